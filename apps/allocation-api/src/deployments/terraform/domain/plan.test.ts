import { expect, test } from 'vitest'
import { findChanges, toPublicPlan } from './plan.ts'

const create = {
  actions: ['create'],
  before: null,
  after: { size: 'small', password: 'one' },
  after_sensitive: { password: true },
}
const toPlan = (change: object, resource: object = {}, whole: object = {}) => ({
  resource_changes: [{ address: 'a.b', type: 'a', name: 'b', change, ...resource }],
  output_changes: {},
  ...whole,
})
const identify = (plan: object) => JSON.stringify(findChanges(toPublicPlan(plan, text => text)))
const base = identify(toPlan(create))
const noOp = { actions: ['no-op'], before: {}, after: {} }
const withOther = (change: object, resource: object = {}) =>
  toPlan(
    create,
    {},
    { resource_changes: [...toPlan(create).resource_changes, { address: 'a.c', change, ...resource }] },
  )
const withOutput = (ip: object) => toPlan(create, {}, { output_changes: { ip } })

test.each<[string, object, isSame: boolean]>([
  ['a secret', toPlan({ ...create, after: { ...create.after, password: 'two' } }), true],
  ['the time', toPlan(create, {}, { timestamp: '2026-01-01T00:00:00Z' }), true],
  ['drift', toPlan(create, {}, { resource_drift: [{ address: 'a.c', change: noOp }] }), true],
  ['a resource that stays', withOther(noOp), true],
  ['an output that stays', withOutput(noOp), true],
  ['an address', toPlan(create, { address: 'a.x' }), false],
  ['an action', toPlan({ ...create, actions: ['delete', 'create'] }), false],
  ['a value', toPlan({ ...create, after: { ...create.after, size: 'large' } }), false],
  ['a value that becomes unknown', toPlan({ ...create, after_unknown: { id: true } }), false],
  ['what is secret', toPlan({ ...create, after_sensitive: {} }), false],
  ['an import', withOther({ ...noOp, importing: { id: 'x' } }), false],
  ['a move', withOther(noOp, { previous_address: 'a.d' }), false],
  ['an output', withOutput({ actions: ['create'], after: '192.0.2.1' }), false],
  ['no change', {}, false],
])('what identifies a plan: %s', (_, plan, isSame) => expect(identify(plan) === base).toBe(isSame))
