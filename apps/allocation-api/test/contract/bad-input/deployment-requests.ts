import { LIMIT_BYTES } from './bodies.ts'
import { type BadRow, create, createWith, deployments, describeValue, postTo, row } from './row.ts'

const json = [400, 'invalid-json'] as const
const tooLarge = [413, 'body-too-large'] as const
const noPath = [404, 'not-found'] as const
const noMethod = [405, 'method-not-allowed'] as const
const badCursor = [422, 'invalid-cursor'] as const

const credentials = '/api/v1/credentials'
/** The id of a deployment that does not exist. */
const id = '0a000000-0000-4000-8000-00000000000b'
const good = String(createWith({}).body)

/** Every path that accepts a body. */
const bodyPaths = [deployments, `${credentials}/object-storage/validate`, `${credentials}/validate`] as const

const notJson: readonly (readonly [rule: string, body: string | Uint8Array])[] = [
  ['no body', ''],
  ['an unclosed object', '{"orgName":"Acme"'],
  ['two values', '{}{}'],
  ['NaN', '{"orgName":NaN}'],
  ['a trailing NUL', '{}\u0000'],
  ['a form', 'orgName=Acme'],
  ['invalid UTF-8', Buffer.from('{"orgName":"\xff"}', 'latin1')],
  ['a surrogate in UTF-8', Buffer.from('{"orgName":"\xed\xa0\x80"}', 'latin1')],
  ['an overlong slash in UTF-8', Buffer.from('{"orgName":"\xc0\xaf"}', 'latin1')],
  ['UTF-16', Buffer.from('\ufeff{}', 'utf16le')],
  ['60,000 brackets that are not closed', '['.repeat(60_000)],
]

const ids: readonly string[] = [
  'x',
  '1',
  id.replaceAll('-', ''),
  `${id}0`,
  `{${id}}`.replaceAll(/[{}]/g, encodeURIComponent),
  `urn:uuid:${id}`,
  `${id}%00`,
  `${id}%20`,
  '__proto__',
  'constructor',
  '..%2f..%2fetc%2fpasswd',
  '%ff',
  "'%20or%20true--",
]

/** Latin-1, because a header has one byte for each character. */
const lastEventIds: readonly string[] = [
  '-1',
  '+1',
  '01',
  '1.0',
  '1e3',
  '0x10',
  'NaN',
  'Infinity',
  '1 2',
  '1,2',
  '2147483648',
  '99999999999999999999',
  '\xb2',
  '\xef\xbc\x91',
  '__proto__',
  "1' or true --",
]

const queries: readonly (readonly [query: string, code: 'invalid-limit' | 'invalid-cursor' | 'invalid-state'])[] = [
  ['status=', 'invalid-state'],
  ['status=READY', 'invalid-state'],
  ['status=ready,failed', 'invalid-state'],
  ['status=constructor', 'invalid-state'],
  ['status=__proto__', 'invalid-state'],
  ['status=%00', 'invalid-state'],
  ['status=%ff', 'invalid-state'],
  ['limit=0', 'invalid-limit'],
  ['limit=-1', 'invalid-limit'],
  ['limit=1e3', 'invalid-limit'],
  ['limit=2147483648', 'invalid-limit'],
  ['limit=x&limit=1', 'invalid-limit'],
  ['cursor=', 'invalid-cursor'],
  ['cursor=1', 'invalid-cursor'],
  ['cursor=!', 'invalid-cursor'],
  ...['0', '-1', '01', '1e3', '99999999999999999', "1' or true --", '1\u0000', '__proto__'].map(
    position => [`cursor=${Buffer.from(position).toString('base64url')}`, 'invalid-cursor'] as const,
  ),
  [`cursor=${'QUFB'.repeat(2_000)}`, 'invalid-cursor'],
]

const paths: readonly string[] = [
  `${deployments}/`,
  '/api/v1/deployment',
  '/api/v1/Deployments',
  `${deployments}/${id}/`,
  `${deployments}/${id}/log`,
  `${deployments}/${id}/logs/`,
  `${deployments}/${id}/logs/1`,
  `${deployments}//logs`,
  credentials,
  `${credentials}/object-storage`,
  `${credentials}/validate/`,
  `${credentials}/object-storage/validate/x`,
  `${credentials}/constructor/validate`,
]

const wrongMethods: readonly (readonly [path: string, methods: readonly string[]])[] = [
  [deployments, ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']],
  [`${deployments}/${id}`, ['POST', 'PUT', 'PATCH', 'OPTIONS']],
  [`${deployments}/${id}/logs`, ['POST', 'PUT', 'DELETE', 'OPTIONS']],
  [`${credentials}/object-storage/validate`, ['GET', 'PUT', 'DELETE', 'OPTIONS']],
  [`${credentials}/validate`, ['GET', 'PATCH', 'DELETE', 'OPTIONS']],
]

export const deploymentRequestRows: readonly BadRow[] = [
  ...bodyPaths.flatMap(path => [
    ...notJson.map(([rule, body]) => row(`${path}: a body must be JSON in UTF-8: ${rule}`, json, postTo(path, body))),
    row(`${path}: no body and no Content-Length`, json, { method: 'POST', path }),
    ...[false, true].map(chunked =>
      row(`${path}: a body above 64 KiB${chunked ? ', chunked' : ''}`, tooLarge, {
        ...postTo(path, good.padEnd(LIMIT_BYTES + 1)),
        chunked,
      }),
    ),
  ]),
  ...['', 'a b', 'k'.repeat(256), 'caf\xe9'].map(key =>
    row(
      `deployment: Idempotency-Key: ${describeValue(key)}`,
      [400, 'invalid-idempotency-key'],
      create(good, [`Idempotency-Key: ${key}`]),
    ),
  ),
  ...paths.map(path => row(`an unknown path is 404: ${path}`, noPath, { path })),
  ...wrongMethods.flatMap(([path, methods]) =>
    methods.map(method =>
      row(`a known path with another method is 405: ${method} ${path}`, noMethod, { method, path }),
    ),
  ),
  ...[...ids, id, id.toUpperCase()].flatMap(unknownId => [
    row(`no such deployment: GET ${describeValue(unknownId)}`, noPath, { path: `${deployments}/${unknownId}` }),
    row(`no such deployment: DELETE ${describeValue(unknownId)}`, noPath, {
      method: 'DELETE',
      path: `${deployments}/${unknownId}`,
    }),
    row(`no such deployment: logs of ${describeValue(unknownId)}`, noPath, {
      path: `${deployments}/${unknownId}/logs`,
    }),
  ]),
  ...lastEventIds.map(value =>
    row(`Last-Event-ID is the id of an event: ${describeValue(value)}`, badCursor, {
      path: `${deployments}/${id}/logs`,
      headers: [`Last-Event-ID: ${value}`],
    }),
  ),
  row('two Last-Event-ID headers', badCursor, {
    path: `${deployments}/${id}/logs`,
    headers: ['Last-Event-ID: 1', 'Last-Event-ID: 2'],
  }),
  ...queries.map(([query, code]) =>
    row(`deployments: ${code.replace('invalid-', '')} is rejected: ${describeValue(query)}`, [422, code], {
      path: `${deployments}?${query}`,
    }),
  ),
]
