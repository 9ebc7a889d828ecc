import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isKnown, type Known, knownGenerations, type WritePrecondition, writePrecondition } from './precondition.ts'

const generation = (value: number): WritePrecondition => ({ kind: 'generation', generation: value })
const missing: WritePrecondition = { kind: 'missing' }
const badMatch: WritePrecondition = { kind: 'invalid', header: 'If-Match' }
const badNoneMatch: WritePrecondition = { kind: 'invalid', header: 'If-None-Match' }

describe('If-Match of a write', () => {
  test.each<readonly [ifMatch: string, says: WritePrecondition]>([
    ['7', generation(7)],
    ['"7"', generation(7)],
    ['W/"7"', generation(7)],
    ['0', generation(0)],
    ['"0"', generation(0)],
    ['W/"0"', generation(0)],
    [' 7 ', generation(7)],
    ['1048577', generation(1_048_577)],
    ['9007199254740991', generation(Number.MAX_SAFE_INTEGER)],
    ['9007199254740992', badMatch],
    ['"9007199254740993"', badMatch],
    ['99999999999999999999', badMatch],
    ['', badMatch],
    [' ', badMatch],
    ['*', badMatch],
    ['"*"', badMatch],
    ['""', badMatch],
    ['"', badMatch],
    ['"7', badMatch],
    ['7"', badMatch],
    ["'7'", badMatch],
    ['" 7"', badMatch],
    ['W/7', badMatch],
    ['w/"7"', badMatch],
    ['W/ "7"', badMatch],
    ['W/W/"7"', badMatch],
    ['07', badMatch],
    ['"00"', badMatch],
    ['-1', badMatch],
    ['-0', badMatch],
    ['+7', badMatch],
    ['7.0', badMatch],
    ['7e0', badMatch],
    ['0x7', badMatch],
    ['7n', badMatch],
    ['1_000', badMatch],
    ['٧', badMatch],
    ['７', badMatch],
    ['"7", "8"', badMatch],
    ['7, 7', badMatch],
    ['7 8', badMatch],
    ['7\n', generation(7)],
    ['abc', badMatch],
    ['null', badMatch],
  ])('%j', (ifMatch, says) => {
    expect(writePrecondition(ifMatch, undefined, { mayCreate: true })).toEqual(says)
    expect(writePrecondition(ifMatch, undefined, { mayCreate: false })).toEqual(says)
  })
})

describe('If-None-Match of a write', () => {
  test.each<
    readonly [
      rule: string,
      ifMatch: string | undefined,
      none: string | undefined,
      put: WritePrecondition,
      del: WritePrecondition,
    ]
  >([
    ['neither header', undefined, undefined, missing, missing],
    ['* alone says 0, where a write may create', undefined, '*', generation(0), missing],
    ['* with white space', undefined, ' * ', generation(0), missing],
    ['* and 0 agree', '0', '*', generation(0), badNoneMatch],
    ['* and "0" agree', '"0"', '*', generation(0), badNoneMatch],
    ['* and another generation do not', '7', '*', badNoneMatch, badNoneMatch],
    ['a tag alone', undefined, '"7"', badNoneMatch, missing],
    ['0 alone', undefined, '0', badNoneMatch, missing],
    ['a tag beside If-Match', '7', '"8"', badNoneMatch, badNoneMatch],
    ['empty', undefined, '', badNoneMatch, missing],
    ['"*" is a tag', undefined, '"*"', badNoneMatch, missing],
    ['* twice', undefined, '*, *', badNoneMatch, missing],
    ['a bad If-Match is told first', 'x', '*', badMatch, badMatch],
  ])('%s', (_, ifMatch, ifNoneMatch, put, del) => {
    expect(writePrecondition(ifMatch, ifNoneMatch, { mayCreate: true })).toEqual(put)
    expect(writePrecondition(ifMatch, ifNoneMatch, { mayCreate: false })).toEqual(del)
  })
})

describe('If-None-Match of a read', () => {
  test.each<readonly [header: string | undefined, known: Known]>([
    [undefined, []],
    ['', []],
    ['*', 'any'],
    [' * ', 'any'],
    ['7', [7]],
    ['"7"', [7]],
    ['W/"7"', [7]],
    ['"6", "7",W/"8" ,9', [6, 7, 8, 9]],
    ['"x", "7"', [7]],
    ['"x"', []],
    ['"7", *', [7]],
    [', ,"7",', [7]],
    ['"07"', []],
  ])('%j', (header, known) => {
    expect(knownGenerations(header)).toEqual(known)
  })

  test.each<readonly [known: Known, answer: boolean]>([
    ['any', true],
    [[7], true],
    [[6, 7], true],
    [[6], false],
    [[], false],
  ])('%j knows generation 7: %s', (known, answer) => {
    expect(isKnown(known, 7)).toBe(answer)
  })
})

describe('for every generation', () => {
  const any = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })

  test('its three spellings say the same to a write and to a read', () => {
    fc.assert(
      fc.property(any, fc.constantFrom('', '"', 'W/"'), (value, opening) => {
        const tag = `${opening}${value}${opening === '' ? '' : '"'}`
        expect(writePrecondition(tag, undefined, { mayCreate: true })).toEqual(generation(value))
        expect(knownGenerations(tag)).toEqual([value])
      }),
    )
  })

  test('nothing else is taken for one', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        const said = writePrecondition(text, undefined, { mayCreate: true })
        expect(said.kind === 'generation').toBe(
          /^\s*(?:\d+|(?:W\/)?"\d+")\s*$/.test(text) && !/["\s/]0\d|^\s*0\d/.test(text),
        )
      }),
    )
  })
})
