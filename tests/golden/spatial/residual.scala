import spatial.dsl._

@spatial class y_kernel(bp: scala.Int = 16, ip: scala.Int = 16, sp: scala.Int = 1) extends SpatialTest {
  type T = Int
  def main(args: Array[String]): Unit = {
    val i_size = ArgIn[T]
    setArg(i_size, args(0).to[T])
    val j_size = ArgIn[T]
    setArg(j_size, args(1).to[T])
    val A_entries1 = ArgIn[T]
    setArg(A_entries1, args(2).to[T])
    val A_pos1_host = DRAM[T](i_size.value + 1)
    setMem(A_pos1_host, loadCSV1D[T]("A_pos1_host.csv"))
    val x_vals_host = DRAM[T](j_size.value)
    setMem(x_vals_host, loadCSV1D[T]("x_vals_host.csv"))
    val A_crd1_host = DRAM[T](A_entries1.value)
    setMem(A_crd1_host, loadCSV1D[T]("A_crd1_host.csv"))
    val A_vals_host = DRAM[T](A_entries1.value)
    setMem(A_vals_host, loadCSV1D[T]("A_vals_host.csv"))
    val b_vals_host = DRAM[T](i_size.value)
    setMem(b_vals_host, loadCSV1D[T]("b_vals_host.csv"))
    val y_vals_host = DRAM[T](i_size.value)
    setMem(y_vals_host, Array.fill[T](i_size.value)(0.to[T]))
    Accel {
      val x_2 = SparseParSRAMSwizzle[T](bp)(65536, true)
      x_2 load x_vals_host(0::j_size.value par ip)
      val b_2 = SparseParSRAMSwizzle[T](bp)(65536, true)
      b_2 load b_vals_host(0::i_size.value par ip)
      val A_pos1 = SRAM[T](65536)
      A_pos1 load A_pos1_host(0::(i_size.value + 1) par ip)
      val y_2 = SRAM[T](65536)
      Foreach(i_size.value by 1 par bp) { i =>
        val A_1_begin = A_pos1(i)
        val A_1_end = A_pos1(i + 1)
        val A_1_length = A_1_end - A_1_begin
        val A_crd1 = FIFO[T](16).retiming
        A_crd1_host stream_load_vec(A_1_begin, A_1_length, A_crd1)
        val A_vals = FIFO[T](16).retiming
        A_vals_host stream_load_vec(A_1_begin, A_1_length, A_vals)
        val total = Reg[T](0.to[T])
        Reduce(total)(A_1_length by 1 par 16) { j_entry =>
          val j = A_crd1.deq
          val A_value = A_vals.deq
          val x_value = x_2.barrierRead(j, Seq())
          A_value * x_value
        } { _ + _ }
        val b_value = b_2.barrierRead(i, Seq())
        y_2(i) = b_value - total.value
      }
      y_vals_host(0::i_size.value par ip) store y_2
    }
    writeCSV1D(getMem(y_vals_host), "y_vals_host.csv")
  }
}
