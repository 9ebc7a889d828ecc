import { describe, expect, test } from 'vitest'
import { TenureJudge, type TenureSummary } from './support/tenure-judge.ts'

const BEAT_MS = 10

/** When the event loops run: `<candidate> <first beat>-<last beat>`. */
const BOTH_RUN = ['a 0-5000', 'b 0-5000']
const A_FROZEN = ['a 0-500', 'a 3000-5000', 'b 0-5000']

/** A tenure of `a` whose deadline is at 1,100 ms. */
const A_LEADS = ['100 a sent - 1', '110 a held - 1 s=1000@1', '110 a start s 1', '111 a write s 1']
/** A tenure of `b`, when the lease of `a` has expired. */
const B_LEADS = ['1700 b sent - 1', '1710 b held - 1 s=1000', '1710 b start s 2', '1711 b write s 2']

const toBeats = (span: string): string[] => {
  const [candidate, from = 0, to = 0] = span.split(/[ -]/)
  const count = (Number(to) - Number(from)) / BEAT_MS + 1
  return Array.from({ length: count }, (_, index) => `${Number(from) + index * BEAT_MS} ${candidate} beat -`)
}

/** Judges lines of candidates, each with the time in milliseconds at which it arrived. */
const judge = (runs: readonly string[], lines: readonly string[], uncertaintyMs = 0): TenureSummary => {
  const observations = [...runs.flatMap(toBeats), ...lines].map(line => {
    const [at, candidate = '', kind = '', slot = '', ...data] = line.split(' ')
    return { after: Number(at) - uncertaintyMs, at: Number(at), candidate, kind, slot, data }
  })
  const tenures = new TenureJudge()
  for (const observation of observations.toSorted((one, other) => one.at - other.at)) tenures.observe(observation)
  return tenures.summarize()
}

type Row = readonly [name: string, runs: readonly string[], lines: readonly string[], expected: object]

const accepted: readonly Row[] = [
  [
    'a leader that stops before the next one starts',
    BOTH_RUN,
    [...A_LEADS, '1099 a leads - s', '1099 a stop s renew-deadline', ...B_LEADS],
    { tenures: 2, reports: 1, endedInPause: 0 },
  ],
  [
    'a frozen leader that stops when it thaws',
    A_FROZEN,
    [...A_LEADS, ...B_LEADS, '3001 a stop s renew-deadline'],
    { tenures: 2, endedInPause: 1 },
  ],
  [
    'a leader with a blocked event loop, which reports leadership until its deadline',
    A_FROZEN,
    [
      ...A_LEADS,
      '600 a question -',
      '600 a leads - s',
      ...B_LEADS,
      '1800 a question -',
      '3001 a stop s renew-deadline',
    ],
    { tenures: 2, reports: 1, endedInPause: 1 },
  ],
  [
    'a late write that the resource rejects',
    BOTH_RUN,
    [...A_LEADS, '1000 a stop s cancelled', ...B_LEADS, '3000 a late s 1'],
    { writes: 3, rejectedLateWrites: 1 },
  ],
  [
    'an overlap by a grant that was decided during a glitch, and counts it',
    BOTH_RUN,
    [
      ...A_LEADS,
      '499 test glitch - begin',
      '500 b sent - 1',
      '501 test glitch - end',
      '510 b held - 1 s=1000@2',
      '510 b start s 2',
      '600 a question -',
      '600 a leads - s',
    ],
    { tenures: 2, overlapsInGlitches: 1 },
  ],
  [
    'the same, if the response to the grant was lost',
    BOTH_RUN,
    [
      ...A_LEADS,
      '499 test glitch - begin',
      '500 b sent - 1',
      '501 test glitch - end',
      '510 b lost s 1',
      '520 b sent - 2',
      '530 b held - 2 s=1000@2',
      '530 b start s 2',
    ],
    { tenures: 2, overlapsInGlitches: 1 },
  ],
  [
    'a response that such a grant overtook, and writes in the order of the tokens',
    BOTH_RUN,
    [
      '90 b sent - 1',
      '499 test glitch - begin',
      '500 a sent - 1',
      '501 test glitch - end',
      '510 a held - 1 s=1000@2',
      '510 a start s 2',
      '520 b held - 1 s=1000@1',
      '520 b start s 1',
      '521 b write s 1',
      '522 a write s 2',
      '523 b late s 1',
      '600 b question -',
      '600 b leads - s',
    ],
    { tenures: 2, overlapsInGlitches: 1, writes: 3, rejectedLateWrites: 1 },
  ],
]

test.each(accepted)('accepts %s', (_, runs, lines, expected) => {
  expect(judge(runs, lines)).toMatchObject({ overlaps: [], violations: [], acceptedLateWrites: 0, ...expected })
})

const OVERLAP = {
  overlaps: [
    's: b started at 1710 with token 2, a has led since 110 and may until 1100 by a response with generation 1',
  ],
}
const rejected: readonly Row[] = [
  ['two starts without a stop between them', BOTH_RUN, [...A_LEADS, ...B_LEADS], OVERLAP],
  [
    'a stop after the next start',
    BOTH_RUN,
    [...A_LEADS, ...B_LEADS, '1712 a stop s renew-deadline'],
    { ...OVERLAP, reasons: { 'renew-deadline': 1 } },
  ],
  [
    'a start after a glitch',
    BOTH_RUN,
    ['98 test glitch - begin', '99 test glitch - end', ...A_LEADS, ...B_LEADS],
    OVERLAP,
  ],
  ['a leader that was frozen only after its deadline', ['a 0-1200', 'b 0-5000'], [...A_LEADS, ...B_LEADS], OVERLAP],
  [
    'a report after the deadline',
    BOTH_RUN,
    [...A_LEADS, '1110 a question -', '1110 a leads - s'],
    { violations: ['a s: leads 10 ms after its deadline'] },
  ],
  [
    'a report after the start of another leader',
    A_FROZEN,
    [...A_LEADS, ...B_LEADS, '2999 a sent - 2', '2999 a held - 2 s=1000', '3000 a leads - s'],
    { violations: ['a s: leads after the start of another'] },
  ],
  [
    'a report after the stop',
    BOTH_RUN,
    [...A_LEADS, '500 a stop s cancelled', '510 a leads - s'],
    { violations: ['a s: leads without a tenure'] },
  ],
  [
    'a second start of one candidate',
    BOTH_RUN,
    [...A_LEADS, '500 a start s 2'],
    { violations: ['a s: started twice'] },
  ],
  ['a stop without a start', BOTH_RUN, ['500 a stop s cancelled'], { violations: ['a s: stopped without a start'] }],
  [
    'a fencing token that does not increase',
    BOTH_RUN,
    [...A_LEADS, '500 a stop s cancelled', '510 b start s 1'],
    { violations: ['b s: token 1 after 1'] },
  ],
  [
    'a late write that the resource accepts',
    BOTH_RUN,
    ['100 a start s 2', '200 a stop s cancelled', '300 b start s 1', '301 b write s 1', '400 a late s 2'],
    { acceptedLateWrites: 1 },
  ],
  [
    'what a candidate sees itself',
    BOTH_RUN,
    [...A_LEADS, '500 a violation s the signal is aborted'],
    { violations: ['a s: violation the signal is aborted'] },
  ],
]

test.each(rejected)('finds %s', (_, runs, lines, expected) => {
  expect(judge(runs, lines)).toMatchObject(expected)
})

describe('a line that was read late', () => {
  const lines = [...A_LEADS, '1105 a question -', '1105 a leads - s', '1106 a stop s renew-deadline']

  test('is accepted if it can have been written in time', () => {
    expect(judge(BOTH_RUN, lines, 10)).toMatchObject({ violations: [], maxUncertaintyMs: 10 })
  })

  test('is a violation if it was certainly written too late', () => {
    expect(judge(BOTH_RUN, lines, 4).violations).toEqual(['a s: leads 1 ms after its deadline'])
  })
})

test('a clock of the witness that shows a time outside of its requests has a step', () => {
  const clock = ['100 a sent - 1', '110 a clock - 1 105', '200 a sent - 2', '210 a clock - 2 905', '210 a held - 2 ']
  expect(judge(BOTH_RUN, clock).witnessClockSteps).toEqual([{ byMs: expect.closeTo(686, 0), at: 210 }])
  expect(judge(BOTH_RUN, [...clock.slice(0, 3), '210 a clock - 2 205']).witnessClockSteps).toEqual([])
})
