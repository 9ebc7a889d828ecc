export interface Layer {
  readonly name: string
  readonly root: string
  readonly folders: readonly string[]
  /** Null for a composition root, which imports everything. */
  readonly imports: readonly string[] | null
  readonly types?: readonly string[]
  readonly packages?: readonly string[]
}

export const layers: readonly Layer[]
export function toPathPatterns(layer: Layer): string[]
