// In which order this browser lists the decisions.

import type { Order } from './decisions';

const KEY = 'bridge.decisions';

class DecisionOrder {
  order: Order = $state(stored());

  choose(order: Order): void {
    this.order = order;
    try {
      localStorage.setItem(KEY, order);
    } catch {
      // Then the order holds until the page is loaded again.
    }
  }
}

function stored(): Order {
  try {
    return localStorage.getItem(KEY) === 'scope' ? 'scope' : 'newest';
  } catch {
    return 'newest';
  }
}

export const decisionOrder = new DecisionOrder();
