import './migrate-from-pdm.ci.test.ts'
