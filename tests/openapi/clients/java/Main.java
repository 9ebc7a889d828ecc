import pool.allocationapi.api.AllocationApi;
import pool.allocationapi.model.CommitRequest;
import pool.allocationapi.model.ReleaseRequest;
import pool.allocationapi.model.ReserveRequest;
import pool.leasewitness.api.LeaseApi;
import pool.leasewitness.model.PutLeaseRequest;

/** Uses both generated clients against running services. Prints "done" if every response is the expected one. */
public class Main {
  private static final String POOL = "pool.test";
  private static final String NAME = "java-client";
  private static final String SLOT = "clients/java";

  private static void expect(String what, Object actual, Object wanted) {
    if (!wanted.equals(actual)) throw new AssertionError(what + ": " + actual + " instead of " + wanted);
  }

  private static void allocate() throws Exception {
    var client = new pool.allocationapi.ApiClient();
    client.updateBaseUri(System.getenv("API_URL"));
    var api = new AllocationApi(client);
    var reserved = api.reserveName(POOL, new ReserveRequest().subdomain(NAME), null);
    var token = reserved.getReservationToken();
    var commit = new CommitRequest().subdomain(NAME).reservationToken(token).loadBalancerIP("203.0.113.10")
        .sovereignFQDN(NAME + "." + POOL);
    expect("commit", api.commitName(POOL, commit, null).getSovereignFQDN(), NAME + "." + POOL);
    var status = api.releaseNameWithHttpInfo(POOL, null, null, null, null, new ReleaseRequest().subdomain(NAME).reservationToken(token))
        .getStatusCode();
    expect("release", status / 100, 2);
  }

  private static void hold() throws Exception {
    var client = new pool.leasewitness.ApiClient();
    client.updateBaseUri(System.getenv("WITNESS_URL"));
    client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + System.getenv("WITNESS_TOKEN")));
    var api = new LeaseApi(client);
    var acquired = api.writeLeaseWithHttpInfo(SLOT, null, "*", null, null, new PutLeaseRequest().holder("java"));
    expect("holder", acquired.getData().getHolder(), "java");
    var tag = acquired.getHeaders().get("etag").get(0);
    try {
      api.writeLease(SLOT, tag, null, null, null, new PutLeaseRequest().holder("other"));
      throw new AssertionError("another holder acquired the lease");
    } catch (pool.leasewitness.ApiException error) {
      expect("acquire of another holder", error.getCode(), 412);
    }
    var renewal = new PutLeaseRequest().holder("java").op(PutLeaseRequest.OpEnum.RENEW);
    var renewed = api.writeLeaseWithHttpInfo(SLOT, tag, null, null, null, renewal);
    expect("generation", renewed.getData().getGeneration(), 2L);
    var released = api.releaseLeaseWithHttpInfo(SLOT, renewed.getHeaders().get("etag").get(0), "java", null);
    expect("release of the lease", released.getStatusCode(), 204);
  }

  public static void main(String[] arguments) throws Exception {
    allocate();
    hold();
    System.out.println("done");
  }
}
