import './controller-election.ci.test.ts'
