import { openSync } from 'node:fs'
import { createTerraform, type TerraformOptions } from '../../../src/deployments/terraform/terraform.ts'
import { toRequest } from './terraform.ts'

/** A process with secrets in its environment, arguments, working directory and open files. Applies a module and prints what it logs. */
const options: TerraformOptions = JSON.parse(process.env.TEST_OPTIONS ?? '')
openSync('mark', 'r')
const terraform = createTerraform({ ...options, env: process.env })
const print = (line: object) => void process.stdout.write(`${JSON.stringify(line)}\n`)
const { signal } = new AbortController()
print({ exposure: await terraform.describeExposure() })
print({ result: await terraform.apply(toRequest(), print, signal) })
// The second run shows what the first one left.
print({ result: await terraform.apply(toRequest({ run: 2 }), print, signal) })
