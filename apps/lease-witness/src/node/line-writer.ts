/**
 * Collects lines and writes them as one block at the end of the turn of the event loop, after the responses that they are
 * about. A write to a pipe is synchronous and takes as long as the rest of a read. `flush` writes at once.
 */
export const createLineWriter = (write: (block: string) => void) => {
  let block = ''
  const flush = (): void => {
    if (block === '') return
    const lines = block
    block = ''
    write(lines)
  }
  return {
    writeLine(line: string): void {
      if (block === '') setImmediate(flush)
      block += `${line}\n`
    },
    flush,
  }
}
