import type { Section } from './report.ts'
import { checkSection, commitSection, notFoundSection, releaseSection, reserveSection } from './sections/allocation.ts'
import { cloneStartSection } from './sections/clone-start.ts'
import { indexesSection } from './sections/indexes.ts'
import { leaseAcquireSection } from './sections/lease-acquire.ts'
import { leaseCostSection } from './sections/lease-cost.ts'
import { leasePostgresSection } from './sections/lease-postgres.ts'
import { leaseWaitSection } from './sections/lease-wait.ts'
import { leaseGetSection, leasePutSection } from './sections/leases.ts'
import { listSection } from './sections/list.ts'
import { samplesSection } from './sections/samples.ts'
import { searchSection } from './sections/search.ts'
import { startSection } from './sections/start.ts'

/** In the order in which they run. */
export const sections: readonly Section[] = [
  reserveSection,
  notFoundSection,
  checkSection,
  commitSection,
  releaseSection,
  listSection,
  searchSection,
  indexesSection,
  samplesSection,
  startSection,
  cloneStartSection,
  leaseGetSection,
  leasePutSection,
  leaseAcquireSection,
  leasePostgresSection,
  leaseWaitSection,
  leaseCostSection,
]
