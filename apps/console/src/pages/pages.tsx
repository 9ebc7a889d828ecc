import { EmptyState } from '../ui/feedback.tsx'
import { Link, useRouter } from '../ui/router.tsx'
import { Page } from '../ui/shell.tsx'
import { BucketsPage } from './buckets.tsx'
import { DeploymentPage } from './deployment.tsx'
import { DeploymentsPage } from './deployments.tsx'
import { LeasePage } from './lease.tsx'
import { LeasesPage } from './leases.tsx'
import { NamePage } from './name.tsx'
import { NamesPage } from './names.tsx'
import { OverviewPage } from './overview.tsx'
import { WizardPage } from './wizard.tsx'
import { ZonePage } from './zone.tsx'
import { ZonesPage } from './zones.tsx'

const NotFoundPage = () => (
  <Page title="Page not found">
    <EmptyState title="The console has no page with this address.">
      <div class="actions">
        <Link class="button" to={{ page: 'overview' }}>
          Open the overview
        </Link>
      </div>
    </EmptyState>
  </Page>
)

/** The page of the current address. */
export const Pages = () => {
  const { route } = useRouter()
  switch (route.page) {
    case 'overview':
      return <OverviewPage />
    case 'names':
      return <NamesPage filter={route.filter} />
    case 'name':
      return <NamePage key={`${route.subdomain}.${route.pool}`} pool={route.pool} subdomain={route.subdomain} />
    case 'zones':
      return <ZonesPage />
    case 'zone':
      return <ZonePage key={route.pool} pool={route.pool} />
    case 'deployments':
      return <DeploymentsPage status={route.status} />
    case 'new-deployment':
      return <WizardPage />
    case 'deployment':
      return <DeploymentPage key={route.id} id={route.id} />
    case 'buckets':
      return <BucketsPage />
    case 'leases':
      return <LeasesPage prefix={route.prefix} />
    case 'lease':
      return <LeasePage key={route.slot} slot={route.slot} />
    case 'not-found':
      return <NotFoundPage />
  }
}
