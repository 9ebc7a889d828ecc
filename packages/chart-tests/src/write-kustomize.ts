import { writeFileSync } from 'node:fs'
import { generateFiles } from './chart.ts'

// Renders the chart into infra/kustomize.

for (const [path, text] of await generateFiles()) writeFileSync(path, text)
