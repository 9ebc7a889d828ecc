import { describe, expect, test } from 'vitest'
import { parseCreatedResource, parseDiagnostic, parseUiMessage } from './output.ts'

const json = (message: object): string => JSON.stringify({ '@level': 'info', '@module': 'terraform.ui', ...message })
const line = (level: string, text: string, prefix = '') => ({ kind: 'line', level, prefix, text, isReason: false })
const resource = { addr: 'module.deployment.terraform_data.x' }

describe('a line of the machine-readable output', () => {
  test.each<readonly [string, string, object]>([
    [
      'a step',
      json({ '@message': 'x: Creating...', type: 'apply_start', hook: { resource } }),
      line('info', 'x: Creating...'),
    ],
    ['a warning of the log', json({ '@level': 'warn', '@message': 'careful', type: 'log' }), line('warn', 'careful')],
    ['an unknown type', json({ '@message': 'new', type: 'of_tomorrow' }), line('info', 'new')],
    ['without a type', json({ '@message': 'typeless', '@level': 'trace' }), line('info', 'typeless')],
    [
      'output of a provisioner',
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
      { kind: 'ignored' },
    ],
    [
      'progress after 61 s',
      json({ '@message': '.', type: 'apply_progress', hook: { elapsed_seconds: 61 } }),
      line('info', '.'),
    ],
    [
      'progress after 70 s',
      json({ '@message': '.', type: 'apply_progress', hook: { elapsed_seconds: 70 } }),
      { kind: 'ignored' },
    ],
    ['a refresh that starts', json({ '@message': '.', type: 'refresh_start' }), { kind: 'ignored' }],
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
      { kind: 'ignored' },
    ],
    ['plain text', 'Initializing the backend...', line('info', 'Initializing the backend...')],
    ['truncated JSON', '{"@message":"x', line('info', '{"@message":"x')],
    ['other JSON', '{"a":1}', line('info', '{"a":1}')],
    ['a blank line', '  ', { kind: 'ignored' }],
    ['a frame', '│ Error: x', line('info', 'Error: x')],
    ['the edge of a frame', '╷', { kind: 'ignored' }],
  ])('%s', (_, input, expected) => {
    expect(parseUiMessage(input, 'info')).toEqual(expected)
  })

  test('a line in another format has the level of its stream', () => {
    expect(parseUiMessage('panic: x', 'error')).toEqual(line('error', 'panic: x'))
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
  expect(parseDiagnostic(lines)).toBe(reason)
})

test('the creation of a resource is recognised by its end', () => {
  const toLine = (type: string, action: string, more: object = { id_key: 'id', id_value: 'b-1' }) =>
    JSON.stringify({ type, hook: { resource: { resource_type: 'minio_s3_bucket' }, action, ...more } })
  expect(parseCreatedResource(toLine('apply_complete', 'create'))).toEqual({ type: 'minio_s3_bucket', id: 'b-1' })
  for (const line of [
    toLine('apply_start', 'create'),
    toLine('apply_complete', 'delete'),
    toLine('apply_complete', 'create', {}),
    '"type":"apply_complete"',
  ]) {
    expect(parseCreatedResource(line)).toBe(null)
  }
})
