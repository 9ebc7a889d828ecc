import { expect, test } from 'vitest'
import { JsonArrayError, JsonArraySplitter } from './json-array-splitter.ts'

/** The elements and the rest of `text`, pushed in chunks of `size` bytes. */
const split = (text: string, size: number) => {
  const splitter = new JsonArraySplitter('sets')
  const bytes = Buffer.from(text)
  const elements: unknown[] = []
  for (let at = 0; at < bytes.length; at += size) elements.push(...splitter.push(bytes.subarray(at, at + size)))
  return { elements, rest: splitter.end() }
}

const tricky = {
  name: 'sets',
  before: { sets: [1, { sets: [] }], text: '"sets":[{' },
  sets: [
    {},
    { a: '}],"sets":[{', b: ['[', ']', '\\', '\\"', '"'], c: { sets: [{}] } },
    { grüße: '\u{1f980}\n', n: -1.5e3, t: true, f: null },
    { last: [[[]]] },
  ],
  after: [{ x: ']' }],
}

test.each([1, 2, 3, 7, 64, 10_000])('chunks of %i bytes give what JSON.parse gives', size => {
  for (const text of [JSON.stringify(tricky), JSON.stringify(tricky, null, 2)]) {
    expect(split(text, size)).toEqual({ elements: tricky.sets, rest: { ...tricky, sets: [] } })
  }
  expect(split('{"sets":[]}', size)).toEqual({ elements: [], rest: { sets: [] } })
  expect(split(' { "kind" : "x" , "sets" : [ ] } ', size)).toEqual({ elements: [], rest: { kind: 'x', sets: [] } })
})

test.each([
  '',
  '[]',
  '<html>',
  '{"other":[{}]}',
  '{"sets":[{}',
  '{"sets":[{},5]}',
  '{"sets":[{x}]}',
  '{"sets":[{}]} x',
])('not an object with the array: %s', text => {
  expect(() => split(text, 4)).toThrow(JsonArrayError)
})

test('the bytes of returned elements are released', () => {
  const splitter = new JsonArraySplitter('sets')
  splitter.push(Buffer.from('{"sets":['))
  const element = Buffer.from(`{"text":"${'x'.repeat(6_000_000)}"},`)
  for (let i = 0; i < 3; i += 1) expect(splitter.push(element)).toHaveLength(1)
  expect(() => {
    for (;;) splitter.push(Buffer.alloc(6_000_000, '{'))
  }).toThrow('too large')
})
