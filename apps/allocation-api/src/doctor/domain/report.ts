/** What one check found. Nothing in it is a secret. */
export interface Finding {
  /** What was checked, such as `database tls` or `zone pool.example`. */
  readonly check: string
  readonly state: 'good' | 'bad' | 'not-checked'
  readonly text: string
  /** What to do. A `bad` finding always has it. */
  readonly advice?: string
}

export const good = (check: string, text: string): Finding => ({ check, state: 'good', text })
export const bad = (check: string, text: string, advice: string): Finding => ({ check, state: 'bad', text, advice })
export const notChecked = (check: string, text: string, advice?: string): Finding => ({
  check,
  state: 'not-checked',
  text,
  ...(advice === undefined ? {} : { advice }),
})

/** The finding for a sentence of the form "what is wrong; what to do". The default is for a sentence without advice. */
export const badWithAdvice = (check: string, sentence: string, defaultAdvice = 'see the text'): Finding => {
  const [text = '', ...advice] = sentence.replace(/\.$/, '').split(/; |: (?=(?:check|install|set) )/)
  return bad(check, text, advice.join('; ') || defaultAdvice)
}

export const countProblems = (findings: readonly Finding[]): number =>
  findings.filter(({ state }) => state === 'bad').length

const LABELS = { good: 'good', bad: 'bad', 'not-checked': 'not checked' } as const

const toSentence = (text: string): string => (/[.?!]\s*$/.test(text) ? text.trim() : `${text.trim()}.`)

/** One line. Line breaks in it could only come from a server. */
export const toLine = ({ check, state, text, advice }: Finding, checkWidth: number): string =>
  `${LABELS[state].padEnd(11)}  ${check.padEnd(checkWidth)}  ${toSentence(text)}${advice === undefined ? '' : ` To do: ${toSentence(advice)}`}`.replaceAll(
    /[\r\n]+/g,
    ' ',
  )

/** The report of an operator: one line for each finding, and a summary. */
export const toText = (findings: readonly Finding[]): string => {
  const width = Math.max(0, ...findings.map(({ check }) => check.length))
  const problems = countProblems(findings)
  const summary = problems === 0 ? 'No problem found.' : `${problems} problem${problems === 1 ? '' : 's'} found.`
  return `${findings.map(finding => toLine(finding, width)).join('\n')}\n\n${summary}\n`
}

export const toJson = (findings: readonly Finding[]): string =>
  `${JSON.stringify({ problems: countProblems(findings), findings }, null, 2)}\n`
