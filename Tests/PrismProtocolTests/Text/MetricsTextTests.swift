import PrismProtocol
import Testing

@Suite("A page of metrics")
struct MetricsTextTests {
  @Test("a label's value can't end its line or its quotes, and a help text can't begin a line of its own")
  func escaping() {
    var page = MetricsText()
    page.add([Metric("prism_x", .gauge, "a \"b\" \\ c\nd") { (_: Int) in 1 }], of: [(["name": "a\"b\\c\nd é"], 0)])
    #expect(
      page.text == #"""
        # HELP prism_x a "b" \\ c\nd
        # TYPE prism_x gauge
        prism_x{name="a\"b\\c\nd é"} 1

        """#)
  }

  @Test("a histogram's buckets are cumulative, and the last one is the count")
  func histogram() {
    var page = MetricsText()
    let histogram = Histogram(edges: [0.001, 0.5], counts: [2, 0, 3], sum: 4.25)
    page.add([Metric("prism_x_seconds", .histogram, "x", { $0 })], of: [(["kind": "meta"] as KeyValuePairs, histogram)])
    #expect(
      page.text.split(separator: "\n").dropFirst(2) == [
        #"prism_x_seconds_bucket{kind="meta",le="0.001"} 2"#, #"prism_x_seconds_bucket{kind="meta",le="0.5"} 2"#,
        #"prism_x_seconds_bucket{kind="meta",le="+Inf"} 5"#, #"prism_x_seconds_sum{kind="meta"} 4.25"#,
        #"prism_x_seconds_count{kind="meta"} 5"#,
      ])
  }
}
