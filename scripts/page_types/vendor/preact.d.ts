// What the page uses of preact. Elements are made by templates, so nothing of JSX is declared.
export type Child = any;
export class Component<P = any, S = any> {
  props: P;
  state: S;
  setState(change: Partial<S>): void;
  render(props: P, state: S): Child;
}
export const Fragment: any;
export function h(type: any, props: any, ...children: Child[]): any;
export function render(what: Child, place: Element | DocumentFragment): void;
