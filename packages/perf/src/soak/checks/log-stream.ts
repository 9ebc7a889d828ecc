/** What one reader of a deployment's log got, over all its connections. */
export interface Followed {
  readonly deployment: string
  readonly reader: string
  readonly lines: readonly { readonly id: number; readonly data: string }[]
  readonly isDone: boolean
}

/** Every line once and in order for each reader, and the same for all of them. */
export const streamFaults = (readers: readonly Followed[]): string[] =>
  [...Map.groupBy(readers, ({ deployment }) => deployment)].flatMap(([deployment, followed]) => {
    const texts = new Map<number, string>()
    return followed.flatMap(({ reader, lines }) =>
      lines.flatMap(({ id, data }, index) => {
        const faults = id === index + 1 ? [] : [`${deployment}: ${reader} got line ${id} as its ${index + 1}th`]
        const other = texts.get(id)
        texts.set(id, data)
        return other === undefined || other === data
          ? faults
          : [...faults, `${deployment}: line ${id} reads ${data} for ${reader}, ${other} before`]
      }),
    )
  })
