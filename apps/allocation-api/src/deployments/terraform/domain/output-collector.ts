import { createLineSplitter } from '../../../lib/line-splitter.ts'
import type { Level, Line } from '../../domain/types.ts'
import { plainReason } from './parse-diagnostic.ts'
import { understand } from './parse-output.ts'
import { flat, readable, shortened } from './sanitize.ts'
import type { Mask } from './secret-masker.ts'

/** Of one line as it comes, in characters: enough for the outputs of a module. */
const LONGEST_HEARD = 256 * 1_024
/** Of one line as it is told, and of a reason. In bytes. */
const LONGEST_TOLD = 8 * 1_024
const LONGEST_REASON = 1_024
const LINES_TOLD = 4_000
const LINES_FOR_A_REASON = 50

export interface Telling {
  hear(stream: 'stdout' | 'stderr', chunk: string): void
  /** The last lines, when nothing ended them. */
  end(): void
  /** The first error diagnostic, masked and on one line. */
  reason(): string | null
  /** Undefined: none were told. Not masked. */
  outputs(): Readonly<Record<string, unknown>> | undefined
}

/** One for a making: the lines of all its commands count together. */
export interface Teller {
  of(phase: Line['phase']): Telling
}

/** Turns what the commands of a making say into lines of its log, masked and bounded. */
export const createTeller = (mask: Mask, tell: (line: Line) => void): Teller => {
  let told = 0
  const give = (line: Line) => {
    told += 1
    if (told <= LINES_TOLD) tell(line)
    if (told === LINES_TOLD + 1) {
      tell({ phase: line.phase, level: 'warn', message: `After ${LINES_TOLD} lines the rest is not kept.` })
    }
  }

  const of = (phase: Line['phase']): Telling => {
    let reason: string | null = null
    let outputs: Readonly<Record<string, unknown>> | undefined
    const complaints: string[] = []

    const onLine = (otherwise: Level) => (line: string, isCut: boolean) => {
      const said = understand(line, otherwise)
      if (said.kind === 'outputs') outputs = said.outputs
      if (said.kind !== 'line') return
      const isWanted = told <= LINES_TOLD || (said.isReason && reason === null)
      if (!isWanted) return
      // First masked, then cut: the other way round the cut could hide a secret from the mask.
      const message = mask(said.lead) + mask(readable(said.text), isCut)
      give({ phase, level: said.level, message: shortened(message, LONGEST_TOLD) })
      if (said.isReason) reason ??= shortened(flat(message), LONGEST_REASON)
      if (otherwise !== 'info' && complaints.length < LINES_FOR_A_REASON) complaints.push(message)
    }
    const lines = {
      stdout: createLineSplitter(LONGEST_HEARD, onLine('info')),
      stderr: createLineSplitter(LONGEST_HEARD, onLine('error')),
    }
    return {
      hear: (stream, chunk) => lines[stream].push(chunk),
      end: () => {
        lines.stdout.end()
        lines.stderr.end()
      },
      reason: () => reason ?? shortenedOrNull(plainReason(complaints)),
      outputs: () => outputs,
    }
  }
  return { of }
}

const shortenedOrNull = (text: string | null): string | null => text && shortened(text, LONGEST_REASON)
