import { describe, expect, test } from 'vitest'
import { plainReason } from './parse-diagnostic.ts'
import { understand } from './parse-output.ts'

const json = (said: object): string => JSON.stringify({ '@level': 'info', '@module': 'terraform.ui', ...said })
const line = (level: string, text: string, lead = '') => ({ kind: 'line', level, lead, text, isReason: false })
const resource = { addr: 'module.deployment.terraform_data.x' }

describe('a line of the machine-readable output', () => {
  test.each<readonly [string, string, object]>([
    [
      'a step',
      json({ '@message': 'x: Creating...', type: 'apply_start', hook: { resource } }),
      line('info', 'x: Creating...'),
    ],
    ['a warning of the log', json({ '@level': 'warn', '@message': 'careful', type: 'log' }), line('warn', 'careful')],
    ['one of a type that is not known', json({ '@message': 'new', type: 'of_tomorrow' }), line('info', 'new')],
    ['without a type', json({ '@message': 'typeless', '@level': 'trace' }), line('info', 'typeless')],
    [
      'what a provisioner says',
      json({
        '@message': 'x (local-exec): hello',
        type: 'provision_progress',
        hook: { resource, provisioner: 'local-exec', output: 'hello' },
      }),
      line('info', 'hello', 'module.deployment.terraform_data.x (local-exec): '),
    ],
    [
      'a warning',
      json({ '@message': 'Warning: old', type: 'diagnostic', diagnostic: { severity: 'warning', summary: 'old' } }),
      line('warn', 'old'),
    ],
    [
      'an error',
      json({
        '@message': 'Error: no',
        type: 'diagnostic',
        diagnostic: {
          severity: 'error',
          summary: 'no',
          detail: 'because\n of',
          address: 'a.b',
          snippet: { code: 'c' },
        },
      }),
      { ...line('error', 'no: because\n of', 'a.b: '), isReason: true },
    ],
    [
      'progress after 50 s',
      json({ '@message': '.', type: 'apply_progress', hook: { elapsed_seconds: 50 } }),
      { kind: 'noise' },
    ],
    [
      'progress after 61 s',
      json({ '@message': '.', type: 'apply_progress', hook: { elapsed_seconds: 61 } }),
      line('info', '.'),
    ],
    [
      'progress after 70 s',
      json({ '@message': '.', type: 'apply_progress', hook: { elapsed_seconds: 70 } }),
      { kind: 'noise' },
    ],
    ['a refresh that starts', json({ '@message': '.', type: 'refresh_start' }), { kind: 'noise' }],
    [
      'outputs',
      json({
        '@message': 'Outputs: 3',
        type: 'outputs',
        outputs: {
          ip: { sensitive: false, type: 'string', value: '192.0.2.1' },
          none: { sensitive: false, type: 'string', value: null },
          key: { sensitive: true, type: 'string', value: 'k' },
        },
      }),
      { kind: 'outputs', outputs: { ip: '192.0.2.1', none: null } },
    ],
    ['no outputs', json({ '@message': 'Outputs: 0', type: 'outputs', outputs: {} }), { kind: 'outputs', outputs: {} }],
    [
      'outputs of a plan',
      json({ '@message': 'Outputs: 1', type: 'outputs', outputs: { ip: { sensitive: false, action: 'create' } } }),
      { kind: 'noise' },
    ],
    ['no JSON', 'Initializing the backend...', line('info', 'Initializing the backend...')],
    ['JSON that was cut', '{"@message":"x', line('info', '{"@message":"x')],
    ['JSON of something else', '{"a":1}', line('info', '{"a":1}')],
    ['a blank line', '  ', { kind: 'noise' }],
    ['a frame', '│ Error: x', line('info', 'Error: x')],
    ['the edge of a frame', '╷', { kind: 'noise' }],
  ])('%s', (_, said, expected) => {
    expect(understand(said, 'info')).toEqual(expected)
  })

  test('a line that is none has the level of its stream', () => {
    expect(understand('panic: x', 'error')).toEqual(line('error', 'panic: x'))
  })
})

test.each<readonly [string, readonly string[], string | null]>([
  ['nothing', [], null],
  ['no error', ['Initializing...', 'done'], null],
  ['a summary alone', ['Error: no backend'], 'no backend'],
  [
    'the first of two, unwrapped',
    ['x', 'Error: Unreadable module', 'No such file or', '  directory', 'Error: second', 'y'],
    'Unreadable module: No such file or directory',
  ],
  ['up to a warning', ['Error: a', 'b', 'Warning: c'], 'a: b'],
])('the reason in plain output: %s', (_, lines, reason) => {
  expect(plainReason(lines)).toBe(reason)
})
