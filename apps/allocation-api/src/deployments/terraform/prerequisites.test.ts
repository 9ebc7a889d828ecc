import { expect, test } from 'vitest'
import { isTooOld, parseVersion } from './prerequisites.ts'

test.each([
  ['1.5.7', true],
  ['0.15.5', true],
  ['1.6.0', false],
  ['1.6.0-alpha20230719', false],
  ['1.10.2', false],
  ['2.0.0', false],
])('whether %s is too old: %s', (version, expected) => {
  expect(isTooOld(version)).toBe(expected)
})

test.each([
  ['{"terraform_version":"1.11.4","platform":"linux_amd64"}', '1.11.4'],
  ['{"terraform_version":"latest"}', null],
  ['{}', null],
  ['null', null],
  ['Terraform v1.11.4', null],
])('parses the version in %s', (answer, version) => {
  expect(parseVersion(answer)).toBe(version)
})
