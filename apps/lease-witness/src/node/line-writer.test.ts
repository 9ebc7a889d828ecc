import { setImmediate as endOfTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createLineWriter } from './line-writer.ts'

const start = () => {
  const blocks: string[] = []
  return { blocks, ...createLineWriter(block => void blocks.push(block)) }
}

test('the lines of one turn of the event loop are one block, after the microtasks', async () => {
  const { blocks, writeLine } = start()
  writeLine('a')
  await Promise.resolve()
  writeLine('b')
  expect(blocks).toEqual([])
  await endOfTurn()
  writeLine('c')
  await endOfTurn()
  expect(blocks).toEqual(['a\nb\n', 'c\n'])
})

test('flush writes at once, and no line twice', async () => {
  const { blocks, writeLine, flush } = start()
  writeLine('a')
  flush()
  expect(blocks).toEqual(['a\n'])
  flush()
  await endOfTurn()
  expect(blocks).toEqual(['a\n'])
})
