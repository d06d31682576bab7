// The hooks of preact that the page uses.
export function useState<T>(first: T | (() => T)): [T, (next: T | ((old: T) => T)) => void];
export function useEffect(work: () => void | (() => void), keys?: unknown[]): void;
export function useLayoutEffect(work: () => void | (() => void), keys?: unknown[]): void;
export function useMemo<T>(make: () => T, keys: unknown[]): T;
export function useCallback<T extends (...given: any[]) => any>(work: T, keys: unknown[]): T;
export function useRef<T>(first: T): { current: T };
