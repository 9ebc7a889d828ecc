import { vi } from 'vitest'

export interface LogLine {
  readonly msg?: unknown
  readonly level?: unknown
  readonly [field: string]: unknown
}

export interface CapturedLogs extends Disposable {
  /** All output so far. */
  readonly text: () => string
  readonly lines: () => LogLine[]
  /** One for each request. */
  readonly accessLines: () => LogLine[]
}

/** Captures the console output of the worker and its objects. */
export const captureLogs = (): CapturedLogs => {
  const output: string[] = []
  const spies = (['log', 'info', 'warn', 'error', 'debug'] as const).map(channel =>
    vi.spyOn(console, channel).mockImplementation((...parts) => void output.push(parts.map(String).join(' '))),
  )
  const lines = (): LogLine[] => output.map(line => JSON.parse(line))
  return {
    text: () => output.join('\n'),
    lines,
    accessLines: () => lines().filter(({ msg }) => msg === 'request'),
    [Symbol.dispose]: () => {
      for (const spy of spies) spy.mockRestore()
    },
  }
}
