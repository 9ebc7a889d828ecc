import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createMask, maskValue, OutputCollector, parseCreation, parseDiagnostic, parseUiMessage } from './output.ts'

const access = 'AKIAMARKEDACCESSKEY1'
const secret = 'mark/"ed+secret\\key\'&<=$' + '{x}%~ü9'
const mask = createMask([access, secret])
const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('a secret is masked', () => {
  test.each<readonly [string, string]>([
    ['unchanged', secret],
    ['in JSON', JSON.stringify({ key: secret })],
    ['in JSON within JSON', JSON.stringify(JSON.stringify(secret))],
    ['in JSON of Go', JSON.stringify(secret).replace('&', '\\u0026').replace('<', '\\u003c')],
    ['in JSON of ASCII alone', JSON.stringify(secret).replace('ü', '\\u00fc')],
    ['in JSON of PHP', JSON.stringify(secret).replace('/', '\\/')],
    ['in a URL', `https://x/?key=${encodeURIComponent(secret)}&b=1`],
    ['in a URL, lower case', `?key=${encodeURIComponent(secret).replace(/%../g, hex => hex.toLowerCase())}`],
    ['in a URL as a whole', encodeURI(`https://x/${secret}`)],
    ['in a form', new URLSearchParams({ key: secret }).toString()],
    ['in HTML', 'mark/&quot;ed+secret\\key&#39;&amp;&lt;=$' + '{x}%~ü9'],
    ['in HTML of Go', 'mark/&#34;ed+secret\\key&#39;&amp;&lt;=$' + '{x}%~ü9'],
    ['in HCL', `"${JSON.stringify(secret).slice(1, -1).replace('${', '$${')}"`],
    ['in single quotes of a shell', `'${secret.replace("'", "'\\''")}'`],
    ['in double quotes of a shell', `"${secret.replace(/["$`\\]/g, '\\$&')}"`],
    ['escaped for a shell', secret.replace(/[^\w.,:+/@%=-]/g, '\\$&')],
    ['in base64', base64(secret)],
    ['in base64 for URLs', Buffer.from(secret).toString('base64url')],
    ['in base64 in a URL', encodeURIComponent(base64(secret))],
    ['in upper case', secret.toUpperCase()],
    ['in lower case', secret.toLowerCase()],
    ['in a URL within a URL', encodeURIComponent(encodeURIComponent(secret))],
    ['in a form within a URL', encodeURIComponent(new URLSearchParams({ key: secret }).toString())],
    ['in JSON within a URL', encodeURIComponent(JSON.stringify(secret))],
    ['in a URL, every byte', Buffer.from(secret).toString('hex').replace(/../g, '%$&')],
    ['in hexadecimal digits', Buffer.from(secret).toString('hex')],
    ['in JSON in base64', base64(JSON.stringify({ key: secret }))],
    ['in a URL in base64', base64(encodeURIComponent(secret))],
    ['in base64 in base64', base64(base64(secret))],
    ['in base64 in a URL within a URL', encodeURIComponent(encodeURIComponent(base64(secret)))],
  ])('%s', (_, text) => {
    const masked = mask(`before ${text} after`)
    expect(masked).toMatch(/^before .{0,25}<redacted>.{0,6} after$/)
    expect(masked).not.toMatch(/secret|bWFya|hcm/i)
  })

  test.each([
    ['its end', (text: string) => text.slice(-24)],
    ['its start', (text: string) => text.slice(0, 24)],
    ['its middle', (text: string) => text.slice(13, 13 + 24)],
    ['a part in base64', (text: string) => base64(text).slice(9, 9 + 24)],
    ['16 characters', (text: string) => text.slice(20, 36)],
  ])('in part, after and before other text: %s', (_, cut) => {
    const long = Array.from({ length: 50 }, (__, i) => String.fromCharCode(65 + ((i * 7) % 26))).join('')
    expect(createMask([long])(`key = ${cut(long)} or so`)).toBe('key = <redacted> or so')
  })

  test('at any offset in base64, in Basic credentials and wrapped over lines', () => {
    for (const before of ['', 'a', 'ab', 'abc']) {
      const encoded = base64(`${before}:${access}:${secret}:rest`)
      const masked = mask(encoded)
      expect(masked.replaceAll('<redacted>', '').length).toBeLessThan(before.length + 24)
      expect(masked.match(/<redacted>/g)).toHaveLength(2)
      const [first = '', second = ''] = [encoded.slice(0, 60), encoded.slice(60)]
      for (const [line, part] of [
        [mask(`x: ${first}`), first],
        [mask(second), second],
      ] as const) {
        expect(line).toContain('<redacted>')
        expect(line).not.toContain(part.slice(-12))
      }
    }
  })

  test('overlapping and adjacent secrets are masked as one', () => {
    const overlapping = createMask(['abcdefgh', 'efghijkl', 'wwww'])
    expect(overlapping('1 abcdefghijkl 2')).toBe('1 <redacted> 2')
    expect(overlapping('abcdefghabcdefgh.')).toBe('<redacted>.')
    expect(overlapping('wwwwwww.')).toBe('<redacted>.')
  })

  test('by each of its lines', () => {
    const lines = createMask(['first line\r\nsecond line'])
    expect(lines('a first line')).toBe('a <redacted>')
    expect(lines('second line b')).toBe('<redacted> b')
  })

  test('in a line that was truncated at any position within it', () => {
    for (let length = 1; length <= access.length; length += 1) {
      const masked = mask(`${'-'.repeat(2_000)} key=${access.slice(0, length)}`, true)
      expect(masked).not.toMatch(/AK?I?A?M?$/)
      expect(masked).toMatch(/^-{100,}.*<redacted>$/)
    }
  })

  test('in every string of a value', () => {
    expect(maskValue({ a: [access, 1, null, true], [access]: { b: `<${access}>` } }, mask)).toEqual({
      a: ['<redacted>', 1, null, true],
      '<redacted>': { b: '<<redacted>>' },
    })
  })
})

test.each([
  ['text without secrets', 'Apply complete! Resources: 3 added, 0 changed, 0 destroyed.'],
  ['a few characters of a secret', 'AKIA is what access keys begin with, KEY1 is not much'],
  ['an empty line', ''],
])('%s is unchanged', (_, text) => {
  expect(mask(text)).toBe(text)
  expect(createMask(['', 'abc'])('abc')).toBe('abc')
})

test('no secret survives any encoding in any context', async () => {
  const encodings: readonly ((text: string) => string)[] = [
    text => text,
    text => JSON.stringify(text),
    text => encodeURIComponent(text),
    text => new URLSearchParams({ text }).toString(),
    base64,
    text => Buffer.from(text).toString('base64url'),
    text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&#34;'),
    text => text.replace(/[$%](?=\{)/g, '$&$&'),
    text => text.replaceAll("'", "'\\''"),
  ]
  const word = fc.string({ unit: 'grapheme-ascii', minLength: 6, maxLength: 40 })
  const around = fc.string({ unit: fc.constantFrom('!', '-', '#', ' '), maxLength: 5 })
  await fc.assert(
    fc.property(word, word, around, around, fc.constantFrom(...encodings), (one, two, before, after, encode) => {
      const masked = createMask([one, two])(encode(before + one) + after + encode(two + after))
      // Neither the encoded secret nor the decoded one is left.
      for (const each of [one, two]) {
        if ('<redacted>'.includes(each)) continue
        expect(masked).not.toContain(each)
        expect(masked).not.toContain(JSON.stringify(each).slice(1, -1))
        expect(masked).not.toContain(encodeURIComponent(each))
        expect(Buffer.from(masked.replaceAll('<redacted>', ''), 'base64').toString()).not.toContain(each)
      }
    }),
    { numRuns: 300 },
  )
})

const json = (message: object): string => JSON.stringify({ '@level': 'info', '@module': 'terraform.ui', ...message })
const line = (level: string, text: string, prefix = '') => ({ kind: 'line', level, prefix, text, isReason: false })
const resource = { addr: 'module.deployment.terraform_data.x' }
const diagnostic = (more: object): string =>
  json({ '@message': 'Error: no', type: 'diagnostic', diagnostic: { severity: 'error', summary: 'no', ...more } })
const reasonLine = (text: string) => ({ ...line('error', text), isReason: true })
/** What Terraform says of a local-exec that fails. */
const failedCommand = (command: string, output: string) =>
  diagnostic({ detail: `Error running command '${command}': exit status 1. Output: ${output}` })
const progress = (output: string): string =>
  json({ '@message': output, type: 'provision_progress', hook: { resource, provisioner: 'local-exec', output } })

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
      'an error with its place, without the code there',
      diagnostic({
        detail: 'bad',
        range: { filename: '../../../opt/modules/cluster/extra.tf', start: { line: 4, column: 1 } },
        snippet: { context: 'resource "hcloud_server" "b"', code: 'password = "p"', values: [{ statement: 'is "v"' }] },
      }),
      reasonLine('no (on cluster/extra.tf line 4, in resource "hcloud_server" "b"): bad'),
    ],
    [
      'an error with a place outside of a block',
      diagnostic({ range: { filename: './main.tf', start: { line: 9 } }, snippet: { context: null, code: '}' } }),
      reasonLine('no (on main.tf line 9)'),
    ],
    [
      'the error of a provisioner, without its command',
      failedCommand("mysql --password='Gen3': exit status 9. Output: x' || exit 1", "it says 'no'\nand ends"),
      reasonLine("no: Error running the command: exit status 1. Output: it says 'no'\nand ends"),
    ],
    [
      'the error of a provisioner in an unknown form',
      diagnostic({ detail: "Error running command 'mysql --password=Gen3': it's gone" }),
      reasonLine('no: Error running the command: its error is not shown.'),
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
  ['not a warning', ['Warning: c', 'Error: a'], 'a'],
  ['a crash', ['x', 'panic: runtime error', 'goroutine 1 [running]:'], 'panic: runtime error: goroutine 1 [running]:'],
  [
    'with its place, without the code there',
    [
      'Error: Bad',
      '',
      '  on ../../m/extra.tf line 4, in locals:',
      '   4:   a = "p"',
      '    ├────',
      '    │ b is "v"',
      '',
      'Why.',
    ],
    'Bad (on m/extra.tf line 4, in locals): Why.',
  ],
])('the reason in plain output: %s', (_, lines, reason) => {
  expect(parseDiagnostic(lines)).toBe(reason)
})

const toHookLine = (type: string, action = 'create') =>
  JSON.stringify({
    type,
    hook: { resource: { addr: 'm.a', resource_type: 'm' }, action, id_key: 'id', id_value: 'b-1' },
  })
const toDiagnosticLine = (summary: string) => JSON.stringify({ type: 'diagnostic', diagnostic: { summary } })
test.each([
  [toHookLine('apply_start'), { kind: 'started', address: 'm.a' }],
  [toHookLine('apply_complete'), { kind: 'complete', address: 'm.a', type: 'm', id: 'b-1' }],
  [toHookLine('apply_errored'), { kind: 'failed', address: 'm.a' }],
  [toDiagnosticLine('Plugin did not respond'), { kind: 'provider-lost' }],
  [toHookLine('apply_complete', 'delete'), null],
  [toHookLine('apply_progress'), null],
  [toDiagnosticLine('Plugin'), null],
  ['"type":"apply_complete"', null],
])('the creation of a resource in the line %s', (line, event) => {
  expect(parseCreation(line)).toEqual(event)
})

describe('the output of a command', () => {
  /** Writes both streams, and returns the log and the reason. */
  const collect = (stdout: readonly string[], stderr: readonly string[] = [], hidden: readonly string[] = []) => {
    const messages: string[] = []
    const collector = new OutputCollector(mask, ({ message }) => messages.push(message))
    const output = collector.forPhase('apply')
    for (const text of stdout) output.write('stdout', `${text}\n`)
    for (const text of stderr) output.write('stderr', `${text}\n`)
    // What a run generates is known at its end.
    collector.hide(hidden)
    output.end()
    return { messages, reason: output.reason() }
  }
  const generated = 'Gen3rated/"password'

  test.each<readonly [what: string, ...Parameters<typeof collect>, reason: string | RegExp | null]>([
    ['nothing', [], [], [], null],
    ['an error of the machine-readable output', [diagnostic({ detail: 'd' })], ['Error: e'], [], 'no: d'],
    ['an error on standard error', ['x'], ['warming up', '\u001b[31mError: e', 'f\u001b[0m'], [], 'e: f'],
    ['an error after many lines', [], [...Array(900).fill('x'), 'Error: e'], [], 'e'],
    [
      'no error, but last lines',
      ['x'],
      ['', '\u001b[31mFailed to refresh state:', ' HTTP 503 ', ''],
      [],
      'Failed to refresh state: HTTP 503',
    ],
    ['the last of many lines', [], [...Array(900).fill('x'), `key ${access}`], [], /^(?:x ){19}key <redacted>$/],
    ['a long last line', [], [`first ${'x'.repeat(9_000)} last`], [], /^first x+ … x+ last$/],
    [
      'the end of the output of a provisioner',
      [failedCommand('c', `${'x'.repeat(9_000)} the cause`)],
      [],
      [],
      /Output: x+ … x+ the cause$/,
    ],
    [
      'hidden output of a provisioner',
      [progress('(output suppressed due to sensitive value in config)'), failedCommand('c', generated)],
      [],
      [],
      /^no: .*exit status 1. Output: \(hidden, /,
    ],
    [
      'a generated value in an error',
      [diagnostic({ detail: `for ${generated}` })],
      [],
      [generated],
      'no: for <redacted>',
    ],
    [
      'a generated value in JSON',
      [diagnostic({ detail: JSON.stringify({ generated }) })],
      [],
      [generated],
      'no: {"generated":"<redacted>"}',
    ],
    [
      'a line of a generated value',
      [diagnostic({ detail: '-a generated key-' })],
      [],
      ['BEGIN\n-a generated key-\n'],
      'no: <redacted>',
    ],
    ['a short generated value', [], ['zone eu-1'], ['eu-1'], 'zone eu-1'],
  ])('has the reason: %s', (_, stdout, stderr, hidden, expected) => {
    const { reason, messages } = collect(stdout, stderr, hidden)
    if (expected instanceof RegExp) expect(reason).toMatch(expected)
    else expect(reason).toBe(expected)
    expect(Buffer.byteLength(reason ?? '')).toBeLessThanOrEqual(1_024)
    expect([reason, ...messages].join()).not.toMatch(/Gen3rated|generated key/)
  })

  test('keeps its head, its end and its errors, however long it is', () => {
    const lines = Array.from({ length: 9_000 }, (_, at) => `line ${at}`)
    const { messages, reason } = collect([diagnostic({ detail: 'd' }), ...lines, `the cause ${access}`])
    expect(messages.slice(0, 3_500)).toEqual(lines.slice(0, 3_500))
    expect(messages.slice(3_500, 3_502)).toEqual([
      'The log has 3500 lines. Of what follows, the last 500 lines appear when Terraform has ended.',
      '… 5,001 lines left out …',
    ])
    expect(messages.slice(3_502)).toEqual([...lines.slice(8_501), 'the cause <redacted>', 'no: d'])
    expect(reason).toBe('no: d')
  })
})
