import type { Section } from './section.ts'
import { checkSection } from './sections/check.ts'
import { commitSection } from './sections/commit.ts'
import { leaseGetSection } from './sections/lease-get.ts'
import { leasePutSection } from './sections/lease-put.ts'
import { leaseRenewalsSection } from './sections/lease-renewals.ts'
import { listSection } from './sections/list.ts'
import { loadSection } from './sections/load.ts'
import { providersSection } from './sections/providers.ts'
import { replicasSection } from './sections/replicas.ts'
import { reserveSection } from './sections/reserve.ts'
import { sizeSection } from './sections/size.ts'
import { startSection } from './sections/start.ts'
import { sweepSection } from './sections/sweep.ts'

/** In the order in which they are run. One more is a file in `sections/` and a line here. */
export const sections: readonly Section[] = [
  reserveSection,
  checkSection,
  commitSection,
  providersSection,
  listSection,
  loadSection,
  replicasSection,
  sizeSection,
  sweepSection,
  startSection,
  leaseGetSection,
  leasePutSection,
  leaseRenewalsSection,
]
