import { INHERITED_VARIABLES } from 'allocation-api/src/config/terraform.ts'
import { knownVariables as ofApi } from 'allocation-api/src/service-config.ts'
import { knownVariables as ofWitness } from 'lease-witness/src/node/config.ts'
import { WORKER_VARIABLES } from 'lease-witness/src/settings.ts'

/** Every variable that has an effect, from the services themselves. */
export const productVariables = {
  'allocation-api': [...ofApi.names, ...INHERITED_VARIABLES],
  'lease-witness': ofWitness.names,
  worker: WORKER_VARIABLES,
}
