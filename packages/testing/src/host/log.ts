const MAX_LINES = 1_000

/** The last lines of the output of a service. */
export interface Log {
  readonly add: (line: string) => void
  readonly lines: () => readonly string[]
}

export const createLog = (): Log => {
  const lines: string[] = []
  return {
    add(line) {
      lines.push(line)
      if (lines.length > MAX_LINES) lines.shift()
    },
    lines: () => lines,
  }
}
