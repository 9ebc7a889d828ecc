import { ConfigIssuesError } from '@pool/runtime/service/env'
import { readEnvironment } from '@pool/runtime/service/read-environment'
import {
  EXIT_FAILURE,
  EXIT_INVALID_CONFIG,
  exitWith,
  exitWithConfigIssues,
  runService,
  type WithoutLimit,
} from '@pool/runtime/service/run-service'
import { readTerraform } from './config/terraform.ts'
import { serveProvisioner } from './deployments/remote-provisioner.ts'
import { requireOwnFolder } from './deployments/terraform/folder-access.ts'
import { createTerraform } from './deployments/terraform/terraform.ts'
import { describeError } from './observability/domain/redact.ts'
import { knownVariables } from './service-config.ts'

// Runs Terraform for a service in another container, at the socket PDM_TERRAFORM_RUNNER. It needs no other secret than those
// of the module.

const parsed = readEnvironment(process.env, { known: knownVariables, secrets: [] }, readTerraform)
const settings = 'config' in parsed ? parsed.config : exitWithConfigIssues(parsed.issues)
const socket = settings.runner ?? exitWith(EXIT_INVALID_CONFIG, 'configuration: PDM_TERRAFORM_RUNNER must be set')

const start = async () => {
  await requireOwnFolder(settings.dataDir).catch(error =>
    error instanceof ConfigIssuesError ? exitWithConfigIssues(error.issues) : Promise.reject(error),
  )
  const provisioner = createTerraform({ ...settings, env: process.env })
  const stop = await serveProvisioner(provisioner, socket).catch((error: unknown) =>
    exitWith(EXIT_FAILURE, `start: ${describeError(error).message}`),
  )
  return { address: { socket }, stop: (withoutLimit: WithoutLimit) => withoutLimit(stop()) }
}
await runService(start, (msg, fields) => void process.stdout.write(`${JSON.stringify({ msg, ...fields })}\n`))
