import { expect, test } from 'vitest'
import { createFailureLog } from './failure-log.ts'

test.each([
  { ends: 'ok ok', lines: [] },
  { ends: 'away away away ok ok', lines: ['check failed: away', 'recovered after check failed'] },
  { ends: 'away full full ok', lines: ['check failed: away', 'check failed: full', 'recovered after check failed'] },
  { ends: 'away ok away', lines: ['check failed: away', 'recovered after check failed', 'check failed: away'] },
])('$ends: one line for each state', ({ ends, lines }) => {
  const logged: string[] = []
  const { onError, onSuccess } = createFailureLog('check failed', (_, msg, fields) => {
    logged.push(msg + ('after' in fields ? ` after ${fields.after}` : `: ${'reason' in fields && fields.reason}`))
  })
  for (const end of ends.split(' ')) end === 'ok' ? onSuccess() : onError(end)
  expect(logged).toEqual(lines)
})
