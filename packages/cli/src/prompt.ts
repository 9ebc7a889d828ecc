import type { ReadStream } from 'node:tty'
import { InterruptedError, UsageError } from './exit-codes.ts'

const ENTER = /[\r\n]/
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
/** Terminals send one or the other for the backspace key. */
const BACKSPACE: readonly string[] = ['\b', '\u007f']
const CTRL_U = '\u0015'

export interface PromptOptions {
  readonly stdin: NodeJS.ReadableStream & Partial<Pick<ReadStream, 'isTTY' | 'setRawMode'>>
  readonly stderr: NodeJS.WritableStream
  readonly signal: AbortSignal
}

interface Question {
  readonly text: string
  readonly isSecret: boolean
  /** What to do without a terminal. */
  readonly otherwise: string
}

/**
 * Reads one line from the terminal in raw mode. What is typed is shown only if it is not a secret. The terminal gets its
 * mode back in every case.
 */
const readLine = (
  { stdin, stderr, signal }: PromptOptions,
  { text, isSecret, otherwise }: Question,
): Promise<string> => {
  if (!stdin.isTTY || !stdin.setRawMode) return Promise.reject(new UsageError(otherwise))
  const setRawMode = stdin.setRawMode.bind(stdin)
  return new Promise((resolve, reject) => {
    let typed = ''
    const end = (finish: () => void) => {
      stdin.removeListener('data', onData)
      signal.removeEventListener('abort', onAbort)
      setRawMode(false)
      stdin.pause()
      stderr.write('\n')
      finish()
    }
    const onAbort = () => end(() => reject(new InterruptedError('SIGINT')))
    const onData = (data: Buffer | string) => {
      for (const character of data.toString()) {
        if (ENTER.test(character)) return end(() => resolve(typed))
        if (character === CTRL_C) return end(() => reject(new InterruptedError('SIGINT')))
        if (character === CTRL_D) {
          if (typed === '') return end(() => reject(new UsageError(otherwise)))
        } else if (BACKSPACE.includes(character)) {
          if (typed !== '' && !isSecret) stderr.write('\b \b')
          typed = typed.slice(0, -1)
        } else if (character === CTRL_U) {
          if (!isSecret) stderr.write('\b \b'.repeat(typed.length))
          typed = ''
        } else if (character >= ' ') {
          typed += character
          if (!isSecret) stderr.write(character)
        }
      }
    }
    if (signal.aborted) {
      reject(new InterruptedError('SIGINT'))
      return
    }
    setRawMode(true)
    stdin.on('data', onData)
    signal.addEventListener('abort', onAbort)
    // Last, so that text which answers the prompt is never echoed by the terminal.
    stderr.write(text)
    stdin.resume()
  })
}

/** Asks for a secret; nothing is shown while it is typed or pasted. */
export const promptSecret = (options: PromptOptions, label: string, otherwise: string): Promise<string> =>
  readLine(options, { text: `${label}: `, isSecret: true, otherwise })

/** Resolves if the user types `expected`. */
export const promptConfirmation = async (options: PromptOptions, question: string, expected: string): Promise<void> => {
  const text = `${question}\nType ${expected} to continue: `
  const otherwise = `${question} Confirm it with --yes.`
  const typed = await readLine(options, { text, isSecret: false, otherwise })
  if (typed.trim() !== expected) throw new UsageError(`not confirmed: ${expected} was not typed. Nothing was changed.`)
}
