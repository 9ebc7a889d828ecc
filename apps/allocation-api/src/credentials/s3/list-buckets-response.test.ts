import { describe, expect, test } from 'vitest'
import type { ListAnswer } from '../domain/classify-s3-response.ts'
import { listAnswerOf } from './list-buckets-response.ts'

const read = (text: string) => listAnswerOf(Buffer.from(text))
const xml = '<?xml version="1.0" encoding="UTF-8"?>'
const list = (id: string) =>
  `<ListAllMyBucketsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Owner><ID>${id}</ID><DisplayName>D</DisplayName></Owner><Buckets><Bucket><Name>b</Name></Bucket></Buckets></ListAllMyBucketsResult>`
const other: ListAnswer = { kind: 'other' }

/** Ten billion characters, if entities were replaced. */
const bomb = `<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">${[...'bcdefghij']
  .map((name, at) => `<!ENTITY ${name} "${`&${'abcdefghi'[at]};`.repeat(10)}">`)
  .join('')}]>`

describe('the body of an answer', () => {
  test.each<readonly [what: string, text: string, answer: ListAnswer]>([
    ['a listing', xml + list('user-1'), { kind: 'listing', owner: 'user-1' }],
    ['a listing without declaration', list('anonymous'), { kind: 'listing', owner: 'anonymous' }],
    ['an id that looks like a number is text', list('007'), { kind: 'listing', owner: '007' }],
    ['an id in parts', list('anony<!-- - --><![CDATA[mous]]>'), { kind: 'listing', owner: 'anonymous' }],
    ['an empty id', list(''), { kind: 'listing', owner: '' }],
    ['an error', `${xml}<Error><Code>AccessDenied</Code><Message/></Error>`, { kind: 'error', code: 'AccessDenied' }],
    ['an error behind a byte order mark', '\ufeff<Error><Code>X</Code></Error>', { kind: 'error', code: 'X' }],
    ['nothing', '', other],
    ['text', 'ok', other],
    ['JSON', '{"ListAllMyBucketsResult":{"Owner":{"ID":"x"}}}', other],
    ['HTML', '<!doctype html><html><body>welcome</body></html>', other],
    ['XHTML', '<html><body>welcome</body></html>', other],
    ['another XML', '<ListBucketResult><Owner><ID>x</ID></Owner></ListBucketResult>', other],
    ['a listing inside of something', `<a>${list('x')}</a>`, other],
    ['two roots', `<a/>${list('x')}`, other],
    ['two listings', list('x') + list('y'), other],
    ['a listing without owner', '<ListAllMyBucketsResult/>', other],
    ['two owners', list('x</ID><ID>y'), other],
    ['a listing that breaks off', list('x').slice(0, 120), other],
    ['a listing that breaks off at its last tag', list('x').slice(0, -25), other],
    ['text behind a listing', `${list('x')}garbage`, other],
    ['an error without code', '<Error><Message>m</Message></Error>', other],
    ['an element in a code', '<Error><Code><a>x</a></Code></Error>', other],
    ['a name that is JavaScript', '<__proto__><Code>x</Code></__proto__>', other],
    ['a listing with a document type', `${xml}<!DOCTYPE l>${list('x')}`, other],
    ['an entity bomb', xml + bomb + list('&j;'), other],
    ['an external entity', `<!DOCTYPE l [<!ENTITY f SYSTEM "file:///etc/passwd">]>${list('&f;')}`, other],
    ['entities are left as they stand', list('&#x41;&amp;'), { kind: 'listing', owner: '&#x41;&amp;' }],
    ['a hundred thousand levels', '<a>'.repeat(100_000), other],
  ])('%s', (_, text, answer) => expect(read(text)).toEqual(answer))

  test('bytes that are no UTF-8', () => {
    expect(listAnswerOf(Buffer.from(list('\xff'), 'latin1'))).toEqual(other)
  })
})
