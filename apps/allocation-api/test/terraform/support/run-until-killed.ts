import { createTerraform, type TerraformOptions } from '../../../src/deployments/terraform/terraform.ts'
import { toRequest } from './terraform.ts'

/** A process in the middle of an apply, a destroy or a plan, for a test to kill. Its options are in its environment. */
const options: TerraformOptions = JSON.parse(process.env.TEST_OPTIONS ?? '')
const terraform = createTerraform({ ...options, env: process.env })
const print = (line: object) => void process.stdout.write(`${JSON.stringify(line)}\n`)
const request = toRequest({ onLock: async lock => print({ message: lock ? 'locked' : 'released', lock }) })
const { signal } = new AbortController()
const operations: Readonly<Record<string, () => Promise<unknown>>> = {
  apply: () => terraform.apply(request, print, signal),
  destroy: () => terraform.destroy(request, print, signal),
  plan: () => terraform.plan({ ...request, destroy: false }, signal),
}
print({ message: 'started' })
void operations[process.env.TEST_OPERATION ?? 'apply']?.()
