import { resolve } from 'node:path'
import { startCommand } from './command.ts'

await startCommand(resolve(import.meta.dirname, '../../..'), 'apps/allocation-api/src/main.ts')
