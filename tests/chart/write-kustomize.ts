import { writeFileSync } from 'node:fs'
import { renderKustomize, toRuleFiles } from './support/chart.ts'

// Copies the rules into the chart, and renders it into infra/kustomize.

for (const [path, text] of toRuleFiles()) writeFileSync(path, text)
for (const [path, text] of await renderKustomize()) writeFileSync(path, text)
