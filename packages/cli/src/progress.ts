import { toPlainLine, truncate } from './text.ts'

const FRAME_MS = 120
const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const CLEAR_LINE = '\r\u001b[K'

export interface Progress {
  /** What the command waits for now. */
  update(text: string): void
  /** Writes lines that stay, above the moving one. */
  print(text: string): void
  /** Removes the line from a terminal. */
  stop(): void
}

export interface ProgressOptions {
  readonly stderr: NodeJS.WritableStream & { readonly columns?: number }
  readonly isTerminal: boolean
  readonly isQuiet: boolean
}

/** One line that moves on a terminal; elsewhere, one line for each new text. Nothing of it goes to standard output. */
export const createProgress = ({ stderr, isTerminal, isQuiet }: ProgressOptions): Progress => {
  let current = ''
  let frame = 0
  let startedAt = 0
  let timer: NodeJS.Timeout | undefined
  const draw = () => {
    const seconds = Math.floor((performance.now() - startedAt) / 1_000)
    const mark = FRAMES[frame % FRAMES.length]
    frame += 1
    stderr.write(`${CLEAR_LINE}${truncate(`${mark} ${current} (${seconds}s)`, (stderr.columns ?? 80) - 1)}`)
  }
  return {
    update(text) {
      const line = toPlainLine(text)
      if (isQuiet || line === current) return
      current = line
      if (!isTerminal) {
        stderr.write(`${line}\n`)
        return
      }
      if (timer === undefined) {
        startedAt = performance.now()
        timer = setInterval(draw, FRAME_MS)
        timer.unref()
      }
      draw()
    },
    print(text) {
      stderr.write(timer === undefined ? text : CLEAR_LINE + text)
    },
    stop() {
      current = ''
      if (timer === undefined) return
      clearInterval(timer)
      timer = undefined
      stderr.write(CLEAR_LINE)
    },
  }
}
