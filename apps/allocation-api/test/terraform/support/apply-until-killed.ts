import { createTerraform, type TerraformOptions } from '../../../src/deployments/terraform/terraform.ts'
import { secrets, variables } from './terraform.ts'

/** A process in the middle of an apply, for a test to kill. Its options are in its environment. */
const options: TerraformOptions = JSON.parse(process.env.TEST_OPTIONS ?? '')
void createTerraform({ ...options, env: process.env }).apply(
  { id: 'm1', run: 1, stateKey: 'acme.pool.test', bucket: null, variables, secrets },
  line => process.stdout.write(`${JSON.stringify(line)}\n`),
  new AbortController().signal,
)
