import { vi } from 'vitest'

export interface Line {
  readonly msg?: unknown
  readonly level?: unknown
  readonly [field: string]: unknown
}

export interface Logged extends Disposable {
  /** Every line so far, as it came. */
  readonly text: () => string
  readonly lines: () => Line[]
  /** The lines of answered requests. */
  readonly answered: () => Line[]
}

/** Takes down what the worker and its objects say, on every channel. */
export const listen = (): Logged => {
  const said: string[] = []
  const spies = (['log', 'info', 'warn', 'error', 'debug'] as const).map(channel =>
    vi.spyOn(console, channel).mockImplementation((...parts) => void said.push(parts.map(String).join(' '))),
  )
  const lines = (): Line[] => said.map(line => JSON.parse(line))
  return {
    text: () => said.join('\n'),
    lines,
    answered: () => lines().filter(({ msg }) => msg === 'answered'),
    [Symbol.dispose]: () => {
      for (const spy of spies) spy.mockRestore()
    },
  }
}
