import { it } from 'vitest';
import { runHalf } from './long-seeds.ts';

it('leadership, cluster time and leases keep every invariant for the odd seeds', () => runHalf('odd'));
