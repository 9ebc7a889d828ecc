/** The type of a message that executes a statement (Postgres manual, message formats: Execute). */
const EXECUTE = 'E'.charCodeAt(0)

/** Calls `onStatement` for each statement in what a client of Postgres sends with the extended protocol, without TLS. */
export const createStatementCounter = (onStatement: () => void) => {
  let rest: Buffer = Buffer.alloc(0)
  /** Only the first message of a connection has no type. */
  let typeBytes = 0
  return (sent: Buffer): void => {
    rest = Buffer.concat([rest, sent])
    while (rest.length >= typeBytes + 4) {
      const end = typeBytes + rest.readUInt32BE(typeBytes)
      if (rest.length < end) break
      if (typeBytes > 0 && rest[0] === EXECUTE) onStatement()
      rest = rest.subarray(end)
      typeBytes = 1
    }
  }
}
