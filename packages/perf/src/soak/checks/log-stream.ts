/** What one reader of a deployment's log received over all its connections. */
export interface FollowedLog {
  readonly deployment: string
  readonly reader: string
  readonly lines: readonly { readonly id: number; readonly data: string }[]
  readonly isDone: boolean
}

/** Each reader receives every line once, in order, and all readers receive the same lines. */
export const findLogStreamErrors = (readers: readonly FollowedLog[]): string[] =>
  [...Map.groupBy(readers, ({ deployment }) => deployment)].flatMap(([deployment, logs]) => {
    const texts = new Map<number, string>()
    return logs.flatMap(({ reader, lines }) =>
      lines.flatMap(({ id, data }, index) => {
        const errors = id === index + 1 ? [] : [`${deployment}: ${reader} received line ${id} at position ${index + 1}`]
        const other = texts.get(id)
        texts.set(id, data)
        return other === undefined || other === data
          ? errors
          : [...errors, `${deployment}: line ${id} is ${data} for ${reader} and ${other} for another reader`]
      }),
    )
  })
