import './tenant-races.ci.test.ts'
