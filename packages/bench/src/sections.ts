import type { Section } from './section.ts'
import { checkSection } from './sections/check.ts'
import { commitSection } from './sections/commit.ts'
import { leaseGetSection } from './sections/lease-get.ts'
import { leasePutSection } from './sections/lease-put.ts'
import { leaseRenewalsSection } from './sections/lease-renewals.ts'
import { listSection } from './sections/list.ts'
import { providersSection } from './sections/providers.ts'
import { reserveSection } from './sections/reserve.ts'

/** In the order in which they are run. One more is a file in `sections/` and a line here. */
export const sections: readonly Section[] = [
  reserveSection,
  checkSection,
  commitSection,
  providersSection,
  listSection,
  leaseGetSection,
  leasePutSection,
  leaseRenewalsSection,
]
