import { describe, expect, test } from 'vitest'
import { type Command, filterCommands, readShortcut } from './commands.ts'

const command = (label: string): Command => ({ id: label, label, hint: '', run: () => undefined })
const commands = ['Names', 'Zones', 'New deployment', 'Deployments', 'Sign out'].map(command)

test.each([
  ['', ['Names', 'Zones', 'New deployment', 'Deployments', 'Sign out']],
  ['ne', ['New deployment']],
  ['dep', ['Deployments', 'New deployment']],
  ['dep new', ['New deployment']],
  ['OUT', ['Sign out']],
  ['ame', []],
])('the palette finds for %j', (text, labels) =>
  expect(filterCommands(commands, text).map(({ label }) => label)).toEqual(labels),
)

describe('readShortcut', () => {
  const press = { key: 'n', hasModifier: false, hasControl: false, isTyping: false }
  test.each([
    [false, { ...press, key: 'g' }, null, true],
    [true, press, 'names', false],
    [true, { ...press, key: 'x' }, null, false],
    [false, press, null, false],
    [false, { ...press, key: '/' }, 'search', false],
    [false, { ...press, key: '/', isTyping: true }, null, false],
    [true, { ...press, isTyping: true }, null, false],
    [false, { ...press, key: 'K', hasControl: true, isTyping: true }, 'palette', false],
    [false, { ...press, key: 'c', hasControl: true }, null, false],
    [false, { ...press, key: 'c', hasModifier: true }, null, false],
  ])('second %s, %o', (isSecond, key, shortcut, isNextSecond) =>
    expect(readShortcut(isSecond, key)).toEqual({ shortcut, isNextSecond }),
  )
})
