// Signals: values that tell whoever has read them.
export interface Signal<T = any> {
  value: T;
  peek(): T;
}
export function signal<T>(first: T): Signal<T>;
export function computed<T>(work: () => T): { readonly value: T };
export function effect(work: () => unknown): () => void;
export function batch<T>(work: () => T): T;
export function untracked<T>(work: () => T): T;
export function useSignal<T>(first: T): Signal<T>;
export function useComputed<T>(work: () => T): { readonly value: T };
