// Somebody else's client of Toss Payments, run against the simulator: what it reads and writes was decided by people who
// never saw this repository. Usage: node check.mjs http://127.0.0.1:PORT
import assert from "node:assert/strict";
import { createRequire } from "node:module";

// The client is looked up where it was installed, which is not where this file lies.
const require = createRequire(`${process.cwd()}/`);
const payments = require("toss-payments-server-api").functional.v1.payments;

const host = process.argv[2];
const connection = {
  host,
  headers: { Authorization: `Basic ${Buffer.from("test_sk_simulator:").toString("base64")}` },
};

const control = async (path, body) => {
  const response = await fetch(`${host}/__sim/${path}`, { method: "POST", body: JSON.stringify(body) });
  const answer = await response.json();
  assert.equal(response.status, 200, `${path}: ${JSON.stringify(answer)}`);
  return answer;
};

const approved = async (checkout) => {
  const { paymentKey } = await control("authenticate", checkout);
  await control("approve", { paymentKey });
  return paymentKey;
};

const refusal = async (call) => {
  try {
    await call();
  } catch (error) {
    return { status: error.status, code: JSON.parse(error.message).code };
  }
  return assert.fail("the call was not refused");
};

const card = await approved({ orderId: "npm-card", orderName: "티셔츠 외 2건", amount: 50000 });
const paid = await payments.at(connection, card);
assert.equal(paid.paymentKey, card);
assert.equal(paid.orderName, "티셔츠 외 2건");
assert.deepEqual(
  [paid.status, paid.method, paid.totalAmount, paid.balanceAmount, paid.vat, paid.cancels],
  ["DONE", "카드", 50000, 50000, 4545, null],
);

const part = await payments.cancel(connection, card, { paymentKey: card, cancelReason: "일부 품절", cancelAmount: 12000 });
assert.deepEqual([part.status, part.balanceAmount, part.cancels.length], ["PARTIAL_CANCELED", 38000, 1]);
assert.equal(part.cancels[0].refundableAmount, 38000);
assert.ok(!Number.isNaN(Date.parse(part.cancels[0].canceledAt)));

const rest = await payments.cancel(connection, card, { paymentKey: card, cancelReason: "단순 변심" });
assert.deepEqual([rest.status, rest.balanceAmount, rest.cancels.length], ["PARTIAL_CANCELED", 0, 2]);
assert.deepEqual(await payments.at(connection, card), rest);
assert.deepEqual(
  await refusal(() => payments.cancel(connection, card, { paymentKey: card, cancelReason: "again" })),
  { status: 403, code: "NOT_CANCELABLE_AMOUNT" },
);

const account = await approved({ orderId: "npm-account", amount: 70000, method: "virtual_account" });
assert.equal((await payments.at(connection, account)).status, "WAITING_FOR_DEPOSIT");
await control("deposit", { paymentKey: account });
const refunded = await payments.cancel(connection, account, {
  paymentKey: account,
  cancelReason: "단순 변심",
  refundReceiveAccount: { bank: "20", accountNumber: "1002000000000", holderName: "김토스" },
});
assert.deepEqual([refunded.status, refunded.method, refunded.balanceAmount], ["CANCELED", "가상계좌", 0]);

assert.deepEqual(await refusal(() => payments.at(connection, "nobody")), { status: 404, code: "NOT_FOUND_PAYMENT" });
assert.deepEqual(
  await refusal(() => payments.at({ host, headers: { Authorization: "Basic b3RoZXI6" } }, card)),
  { status: 401, code: "UNAUTHORIZED_KEY" },
);

console.log("npm check passed: toss-payments-server-api reads and cancels payments of the simulator");
