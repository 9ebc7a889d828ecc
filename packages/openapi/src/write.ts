import { writeFileSync } from 'node:fs'
import { leaseWitnessFile, leaseWitnessText } from './lease-witness.ts'

writeFileSync(leaseWitnessFile, leaseWitnessText())
