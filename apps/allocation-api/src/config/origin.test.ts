import { expect, test } from 'vitest'
import { normalizeOrigin } from './origin.ts'

test.each([
  ['https://Console.Example', 'https://console.example'],
  ['https://console.example:443', 'https://console.example'],
  ['http://[0::1]:8080', 'http://[::1]:8080'],
  ['null', null],
  ['*', null],
  ['console.example', null],
  ['https://', null],
  ['https://*.example', null],
  ['https://console.example/', null],
  ['https://user@console.example', null],
  ['https://console.example?x', null],
  ['file:///x', null],
])('the form of %s', (origin, expected) => expect(normalizeOrigin(origin)).toBe(expected))
