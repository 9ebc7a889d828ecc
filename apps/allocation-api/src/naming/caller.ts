/** The origin of a request, for the history. */
export interface Caller {
  /** The listener that received the request, or the component that acts without one. */
  readonly actor: 'in-cluster' | 'operator' | 'deployment'
  readonly address: string | null
  readonly requestId: string
}
