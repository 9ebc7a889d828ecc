import { spawnSync } from 'node:child_process'

const isInstalled = ['terraform', 'tofu'].some(tool => spawnSync(tool, ['version']).error === undefined)
export const missingTerraform = isInstalled
  ? undefined
  : 'poolctl deployments: missing terraform or tofu (https://developer.hashicorp.com/terraform/install)'
