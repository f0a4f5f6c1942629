// Types that several files of the page share.

import type { Api, Change } from './api-types.js';
import type { Choice } from './palette.js';
import type { TeamApi } from './team-types.js';

/** All operations that the page uses. */
export interface Routes extends Api, TeamApi {}

/** What a request needs besides its route. TypeScript would accept any fields for an empty object type. */
export type RequestOptions<R extends keyof Routes> = Omit<Routes[R], 'response'> & { params?: Routes[R] extends { params: infer P } ? P : never };

/** The connection to the change feed. `closed`: the server no longer accepts this page. */
export type Connection = 'on' | 'off' | 'closed';

export type Child = Node | string | number | boolean | null | undefined | Child[];

export interface Attributes {
  [name: string]: string | number | boolean | null | undefined | ((event: any) => unknown);
  onclick?: (event: MouseEvent & { currentTarget: HTMLElement }) => unknown;
  onchange?: (event: Event & { target: HTMLInputElement }) => unknown;
  onkeydown?: (event: KeyboardEvent) => unknown;
  onmousemove?: (event: MouseEvent) => unknown;
}

/** The element that `h` builds for a name. */
export type ElementOf<N> = N extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[N] : SVGElement;

export interface FieldOptions<N extends string = string> {
  name: N;
  label: string;
  value?: string | null;
  /** The height of a text area. */
  rows?: number;
  /** The values and labels of a list. */
  choices?: [value: string, label: string][];
  required?: boolean;
  help?: string;
  type?: string;
  autofocus?: boolean;
  min?: number;
  max?: number;
  step?: number;
}

export interface DialogOptions<N extends string> {
  title: string;
  text?: string;
  fields?: FieldOptions<N>[];
  confirmLabel?: string;
  danger?: boolean;
  onSubmit: (typed: Record<N, string>) => Promise<unknown>;
}

/** Shows a hash of the address, or renders it again if it is shown. */
export type Go = (hash: string) => void;

/** One of the views in the navigation. */
export interface View {
  element: HTMLElement;
  route: (first: string | null, second: string | null, project: string) => unknown;
  onChange: (change: Change) => void;
  onGap: () => void;
  hasUnsaved?: () => boolean;
  focusSearch?: () => void;
  /** What the command palette offers in this view. */
  actions?: () => Choice[];
}

/** A view of a node or of a workspace beside the tree. */
export interface DetailView {
  element: HTMLElement;
  hasUnsaved: () => boolean;
  actions?: () => Choice[];
  /** Loads the data again if one of these nodes concerns it; `null` means that any node may have changed. */
  refresh: (ids: string[] | null) => void;
}
