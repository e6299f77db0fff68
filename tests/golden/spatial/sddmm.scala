import spatial.dsl._

@spatial class A_kernel(bp: scala.Int = 12, ip: scala.Int = 16, sp: scala.Int = 1) extends SpatialTest {
  type T = Int
  def main(args: Array[String]): Unit = {
    val i_size = ArgIn[T]
    setArg(i_size, args(0).to[T])
    val j_size = ArgIn[T]
    setArg(j_size, args(1).to[T])
    val k_size = ArgIn[T]
    setArg(k_size, args(2).to[T])
    val B_entries1 = ArgIn[T]
    setArg(B_entries1, args(3).to[T])
    val B_pos1_host = DRAM[T](i_size.value + 1)
    setMem(B_pos1_host, loadCSV1D[T]("B_pos1_host.csv"))
    val D_vals_host = DRAM[T](j_size.value * k_size.value)
    setMem(D_vals_host, loadCSV1D[T]("D_vals_host.csv"))
    val C_vals_host = DRAM[T](i_size.value * k_size.value)
    setMem(C_vals_host, loadCSV1D[T]("C_vals_host.csv"))
    val B_crd1_host = DRAM[T](B_entries1.value)
    setMem(B_crd1_host, loadCSV1D[T]("B_crd1_host.csv"))
    val B_vals_host = DRAM[T](B_entries1.value)
    setMem(B_vals_host, loadCSV1D[T]("B_vals_host.csv"))
    val A_vals_host = DRAM[T](B_entries1.value)
    setMem(A_vals_host, Array.fill[T](B_entries1.value)(0.to[T]))
    Accel {
      val B_pos1 = SRAM[T](65536)
      B_pos1 load B_pos1_host(0::(i_size.value + 1) par ip)
      Foreach(i_size.value by 1 par bp) { i =>
        val B_1_begin = B_pos1(i)
        val B_1_end = B_pos1(i + 1)
        val B_1_length = B_1_end - B_1_begin
        val A_vals = FIFO[T](16).retiming
        val B_crd1 = FIFO[T](16).retiming
        B_crd1_host stream_load_vec(B_1_begin, B_1_length, B_crd1)
        val B_vals = FIFO[T](16).retiming
        B_vals_host stream_load_vec(B_1_begin, B_1_length, B_vals)
        Foreach(B_1_length by 1 par 1) { j_entry =>
          val j = B_crd1.deq
          val B_value = B_vals.deq
          val from = j * k_size.value
          val D_on = SRAM[T](65536)
          D_on load D_vals_host(from::(from + k_size.value) par ip)
          val from_2 = i * k_size.value
          val C_on = SRAM[T](65536)
          C_on load C_vals_host(from_2::(from_2 + k_size.value) par ip)
          val total = Reg[T](0.to[T])
          Reduce(total)(k_size.value by 1 par ip) { k =>
            val C_on_value = C_on(k)
            val D_on_value = D_on(k)
            B_value * C_on_value * D_on_value
          } { _ + _ }
          A_vals.enq(total.value)
        }
        A_vals_host stream_store_vec(B_1_begin, A_vals, B_1_length)
      }
    }
    writeCSV1D(getMem(A_vals_host), "A_vals_host.csv")
  }
}
